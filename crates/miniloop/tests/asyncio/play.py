"""Plays programs on CPython's asyncio, in virtual time: one program a line comes in, its trace goes out as a line.

A program is a list of acts, an act a list that begins with its name (see program.rs, which prints them). The loop is asyncio's own; only its
clock and the wait for that clock are replaced. Times are whole nanoseconds, which a float holds exactly.
"""

import asyncio
import json
import selectors
import socket
import sys


class JumpingSelector(selectors.DefaultSelector):
    """Never sleeps: when nothing has happened, the time of the next timer comes."""

    loop = None

    def select(self, timeout=None):
        events = super().select(0)
        if not events and timeout != 0:
            self.loop.virtual_time = self.loop._scheduled[0]._when
        return events


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.virtual_time = 0.0
        selector = JumpingSelector()
        super().__init__(selector)
        selector.loop = self
        self._clock_resolution = 0.5

    def time(self):
        return self.virtual_time


class Player:
    def __init__(self, loop):
        self.loop = loop
        self.trace = []
        self.handles, self.promises, self.tasks = [], [], []
        self.deadlines, self.hanging = set(), []
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)

    def note(self, what):
        self.trace.append(f"{what}@{int(self.loop.time())}")

    def newest(self, things, nth):
        return things[len(things) - 1 - nth % len(things)] if things else None

    def deadline(self, delay):
        """No two are equal: asyncio promises no order for those."""
        deadline = self.loop.time() + delay
        while deadline in self.deadlines:
            deadline += 1
        self.deadlines.add(deadline)
        return deadline

    def callback(self, body):
        label, acts = body

        def run(*_):
            self.note(label)
            self.act_all(acts)

        return run

    def act_all(self, acts):
        for act in acts:
            self.act(*act)

    def act(self, name, *rest):
        if name == "soon":
            self.handles.append(self.loop.call_soon(self.callback(rest[0])))
        elif name == "later":
            self.handles.append(self.loop.call_at(self.deadline(rest[0]), self.callback(rest[1])))
        elif name == "cancel":
            if handle := self.newest(self.handles, rest[0]):
                handle.cancel()
        elif name == "promise":
            self.promises.append(self.loop.create_future())
        elif name == "resolve":
            promise = self.newest(self.promises, rest[0])
            if promise and not promise.done():
                promise.set_result(None)
        elif name == "promise_done":
            if promise := self.newest(self.promises, rest[0]):
                promise.add_done_callback(self.callback(rest[1]))
        elif name == "task_done":
            if task := self.newest(self.tasks, rest[0]):
                task.add_done_callback(self.callback(rest[1]))
        elif name == "spawn":
            self.tasks.append(self.loop.create_task(self.task(len(self.tasks), *rest[0])))
        elif name == "spawn_cancelled":
            self.hanging.append(self.loop.create_task(self.task(len(self.tasks), *rest[0])))
            self.hanging[-1].cancel()
        elif name == "spawn_hanging":
            task = self.loop.create_task(self.hang(rest[0]))
            self.hanging.append(task)  # asyncio itself does not keep tasks alive
            self.handles.append(self.loop.call_at(self.deadline(rest[1]), task.cancel))
        elif name == "watch":
            self.loop.add_reader(self.ours, self.readable(rest[0]))
        elif name == "unwatch":
            self.loop.remove_reader(self.ours)
        elif name == "write":
            self.theirs.send(b"x")
        else:
            raise ValueError(name)

    def readable(self, body):
        label, acts = body
        acts = list(acts)

        def run():
            self.ours.recv(1 << 16)
            self.note(label)
            # Only once: one that writes would make itself run for ever.
            first_acts = acts[:]
            acts.clear()
            self.act_all(first_acts)

        return run

    async def task(self, older_len, label, steps):
        for index, step in enumerate(steps):
            if step[0] == "yield":
                await asyncio.sleep(0)
            elif step[0] == "await_promise":
                if promise := self.newest(self.promises, step[1]):
                    await promise
            elif step[0] == "await_task":
                # Only tasks that are older, so that no two wait for each other.
                if task := self.newest(self.tasks[:older_len], step[1]):
                    await task
            else:
                self.act(*step)
            self.note(f"{label}.{index}")

    async def hang(self, label):
        try:
            await self.loop.create_future()
        finally:
            self.note(label)


def play(program):
    loop = JumpingLoop()
    player = Player(loop)
    loop.call_soon(player.act_all, program)
    loop.call_at(float(1 << 50), loop.stop)
    loop.run_forever()
    trace = player.trace
    player.trace = []  # what ends with the loop is not compared
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    player.ours.close()
    player.theirs.close()
    return trace


for line in sys.stdin:
    print(json.dumps(play(json.loads(line))), flush=True)
