"""Says back what it hears, with uWebSockets through socketify."""

import sys

from socketify import App, AppListenOptions


def hear(socket, message, opcode):
    socket.send(message, opcode)


app = App()
app.ws("/*", {"compression": 0, "idle_timeout": 0, "max_payload_length": 65536, "message": hear})
options = AppListenOptions(port=int(sys.argv[1]), host="127.0.0.1")
app.listen(options, lambda _: print("up", flush=True))
app.run()
