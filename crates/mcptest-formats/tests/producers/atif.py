"""Makes the fixture of ATIF with Harbor's own types, offline.

    pip install harbor  (Python 3.12 or later)
    python atif.py FIXTURES
"""

import json
import pathlib
import sys

from harbor.models.trajectories import (
    Agent, FinalMetrics, Metrics, Observation, ObservationResult, Step, ToolCall, Trajectory,
)


def call(id, name):
    return ToolCall(tool_call_id=id, function_name=name, arguments={"city": "Rome"})


trajectory = Trajectory(
    session_id="session-1",
    agent=Agent(name="weather-agent", version="1.0", model_name="model-a"),
    steps=[
        Step(step_id=1, source="user", message="What are the weather and the time in Rome?"),
        Step(
            step_id=2, source="agent", message="",
            tool_calls=[call("call_w", "get_weather"), call("call_t", "get_time")],
            observation=Observation(results=[
                ObservationResult(
                    source_call_id="call_t", content="no clock for Rome", extra={"is_error": True}
                ),
                ObservationResult(source_call_id="call_w", content="sunny"),
            ]),
            metrics=Metrics(prompt_tokens=100, completion_tokens=20, cached_tokens=0),
        ),
        Step(
            step_id=3, source="agent",
            message="It is sunny in Rome. The clock is not available.",
            metrics=Metrics(prompt_tokens=200, completion_tokens=20, cached_tokens=64),
        ),
    ],
    final_metrics=FinalMetrics(
        total_prompt_tokens=300, total_completion_tokens=40, total_cached_tokens=64, total_steps=3
    ),
)
path = pathlib.Path(sys.argv[1]) / "atif" / "trajectory.json"
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(json.dumps(trajectory.to_json_dict(), indent=1) + "\n")
print("wrote atif/trajectory.json")
