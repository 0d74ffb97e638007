"""Makes the fixtures of MCP captures with the official SDK and real recorders, offline.

    pip install mcp mcp-recorder "starlette<1"
    python jsonrpc.py FIXTURES

A server and a client on the official `mcp` package talk over stdio through this script, which
writes every line that passes. mcp-recorder records the same server by its own proxy.
"""

import asyncio
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

FIXTURES = pathlib.Path(sys.argv[-1])
SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def get_weather(city: str) -> dict:
    """Weather of a city"""
    return {"city": city, "sky": "sunny"}


@server.tool()
def get_time(city: str) -> str:
    """Local time of a city"""
    raise ValueError("no clock for " + city)


server.run("stdio")
'''


def relay(target, command):
    """Runs a server and copies the lines of both directions to a file."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    with open(target, "a") as capture:
        def copy(source, sink):
            for line in source:
                with lock:
                    capture.write(line.decode())
                    capture.flush()
                sink.write(line)
                sink.flush()

        back = threading.Thread(target=copy, args=(process.stdout, sys.stdout.buffer), daemon=True)
        back.start()
        copy(sys.stdin.buffer, process.stdin)
        process.stdin.close()
        process.wait()
        back.join()


async def use(command):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(parameters) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await session.list_tools()
            await session.call_tool("get_weather", {"city": "Rome"})
            await session.call_tool("get_time", {"city": "Rome"})


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    server = folder / "server.py"
    server.write_text(SERVER)
    capture = folder / "capture.jsonl"
    me = str(pathlib.Path(__file__).resolve())
    asyncio.run(use([sys.executable, me, "relay", str(capture), sys.executable, str(server)]))
    target = FIXTURES / "mcp-jsonrpc"
    target.mkdir(parents=True, exist_ok=True)
    target.joinpath("capture.jsonl").write_text(capture.read_text())
    print("wrote mcp-jsonrpc/capture.jsonl")
    scenarios = folder / "scenarios.yml"
    scenarios.write_text(json.dumps({
        "schema_version": "1.0",
        "target": {"command": sys.executable, "args": [str(server)]},
        "scenarios": {"weather": {"description": "weather", "actions": [
            "list_tools",
            {"call_tool": {"name": "get_weather", "arguments": {"city": "Rome"}}},
            {"call_tool": {"name": "get_time", "arguments": {"city": "Rome"}}},
        ]}},
    }))
    subprocess.run(
        [str(pathlib.Path(sys.executable).with_name("mcp-recorder")), "record-scenarios",
         str(scenarios), "--output-dir", str(folder)],
        check=True,
    )
    cassette = json.loads((folder / "weather.json").read_text())
    # The command has paths of the machine.
    cassette["metadata"]["server_url"] = "stdio://server"
    target.joinpath("mcp-recorder.json").write_text(json.dumps(cassette, indent=1) + "\n")
    print("wrote mcp-jsonrpc/mcp-recorder.json")


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        relay(sys.argv[2], sys.argv[3:])
    else:
        main()
