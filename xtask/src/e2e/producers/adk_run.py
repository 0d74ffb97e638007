"""An agent on Google ADK with two MCP servers, evaluated: PROMPT FILE.

MCP_CONFIG names a file with `mcpServers`. Writes `FILE.session.json` (the session), and of the
same run `FILE.evalset.json` (an eval set as ADK converts sessions to it), `FILE.old.evalset.json`
(the same with the former intermediate data) and `FILE.result.json` (an eval set result).
"""

import asyncio
import json
import os
import sys

from google.adk.agents import Agent
from google.adk.evaluation.eval_case import (EvalCase, IntermediateData, SessionInput,
                                             get_all_tool_calls, get_all_tool_responses)
from google.adk.evaluation.eval_metrics import EvalMetricResultPerInvocation
from google.adk.evaluation.eval_result import EvalCaseResult, EvalSetResult
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.evaluation.evaluator import EvalStatus
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters


async def main(prompt, file):
    config = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    toolsets = [
        McpToolset(connection_params=StdioConnectionParams(timeout=60,
            server_params=StdioServerParameters(command=server["command"], args=server["args"])))
        for server in config.values()
    ]
    agent = Agent(name="weather_agent", model="gemini-2.5-flash", tools=toolsets)
    runner = InMemoryRunner(agent=agent, app_name="weather_app")
    session = await runner.session_service.create_session(app_name="weather_app", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        pass
    session = await runner.session_service.get_session(
        app_name="weather_app", user_id="user", session_id=session.id)
    for toolset in toolsets:
        await toolset.close()

    def write(ending, model):
        with open(file + ending, "w") as out:
            out.write(model.model_dump_json(by_alias=True, exclude_none=True))

    def eval_set(invocations):
        case = EvalCase(eval_id="rome", conversation=invocations,
                        session_input=SessionInput(app_name="weather_app", user_id="user"))
        return EvalSet(eval_set_id="weather", name="weather", eval_cases=[case])

    write(".session.json", session)
    invocations = EvaluationGenerator.convert_events_to_eval_invocations(session.events)
    write(".evalset.json", eval_set(invocations))
    per_invocation = [EvalMetricResultPerInvocation(
        actual_invocation=one, expected_invocation=one.model_copy(
            update={"intermediate_data": IntermediateData()})) for one in invocations]
    write(".result.json", EvalSetResult(
        eval_set_result_id="weather_1", eval_set_id="weather", eval_case_results=[EvalCaseResult(
            eval_set_id="weather", eval_id="rome", final_eval_status=EvalStatus.PASSED,
            overall_eval_metric_results=[], session_id=session.id,
            eval_metric_result_per_invocation=per_invocation)]))
    for one in invocations:
        data = one.intermediate_data
        one.intermediate_data = IntermediateData(tool_uses=get_all_tool_calls(data),
                                                 tool_responses=get_all_tool_responses(data))
    write(".old.evalset.json", eval_set(invocations))


asyncio.run(main(*sys.argv[1:]))
