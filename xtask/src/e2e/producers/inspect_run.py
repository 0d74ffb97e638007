"""An evaluation with inspect_ai and two MCP servers: PROMPT FILE.

MCP_CONFIG names a file with `mcpServers`. EPOCHS is the number of epochs. Writes
`FILE.eval`, `FILE.deflate.eval` (compressed as in earlier versions) and `FILE.json`.
"""

import json
import os
import shutil
import sys
import zipfile

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.scorer import includes
from inspect_ai.solver import solver, use_tools
from inspect_ai.tool import mcp_connection, mcp_server_stdio, mcp_tools

prompt, file = sys.argv[1:]
config = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
servers = [mcp_server_stdio(name=name, command=server["command"], args=server["args"])
           for name, server in config.items()]
sources = [mcp_tools(server) for server in servers]


@solver
def connected():
    """One process per server and sample; without a connection there is one for each call."""
    async def solve(state, generate):
        async with mcp_connection(sources):
            return await generate(state)

    return solve


task = Task(
    name="weather",
    dataset=[Sample(id="rome", input=prompt, target="22")],
    solver=[use_tools(*sources), connected()],
    scorer=includes(),
    epochs=int(os.environ.get("EPOCHS", 1)),
)
[log] = eval(task, model="openai/gpt-5", model_args={"responses_api": False}, log_dir=file,
             display="none", max_samples=1)
shutil.copy(log.location, file + ".eval")
write_eval_log(read_eval_log(log.location), file + ".json")
with zipfile.ZipFile(log.location) as new, \
        zipfile.ZipFile(file + ".deflate.eval", "w", zipfile.ZIP_DEFLATED) as old:
    for name in new.namelist():
        old.writestr(name, new.read(name))
