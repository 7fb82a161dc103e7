/** The doors of one thread: their listeners, who waits, and who is through. */
import { createServer, type Server, type Socket } from 'node:net';
import { systemClock } from '../../platform/clock.ts';
import { Strangers } from '../strangers.ts';
import { Passage } from './passage.ts';
import type { Door, DoorFigures } from './server-proxy.ts';

/** At one door, of those who are not known to have logged in; whoever comes beyond displaces one. */
const MAX_STRANGERS = 256;
/** At one door, and at all: each takes two descriptors of the host's. */
const MAX_OPEN = 600;
const MAX_ALL = 8000;
/** A server that has not come by then does not come. */
const WAIT_MS = 60_000;
const LOOK_MS = 1000;
const BACKLOG = 511;

interface State {
  readonly door: Door;
  readonly servers: Server[];
  readonly strangers: Strangers;
  readonly all: Set<Passage>;
  readonly waiting: Set<Passage>;
  port: number | null;
  accepted: number;
}

export class ProxyDoors {
  readonly #doors = new Map<string, State>();
  readonly #wanted: (door: string) => void;
  readonly #looking: NodeJS.Timeout;

  constructor(wanted: (door: string) => void) {
    this.#wanted = wanted;
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Listens, and rejects with the error of the system when it cannot. */
  async open(door: Door): Promise<void> {
    if (this.#doors.has(door.name)) return;
    const strangers = new Strangers(now);
    const state: State = {
      door,
      servers: [],
      strangers,
      all: new Set(),
      waiting: new Set(),
      port: null,
      accepted: 0,
    };
    this.#doors.set(door.name, state);
    try {
      for (const address of door.addresses) state.servers.push(await this.#listen(state, address));
    } catch (error) {
      await this.shut(door.name);
      throw error;
    }
  }

  async shut(name: string): Promise<void> {
    const state = this.#doors.get(name);
    if (state === undefined) return;
    this.#doors.delete(name);
    for (const passage of state.all) passage.end();
    await Promise.all(state.servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }

  lead(name: string, port: number | null): void {
    const state = this.#doors.get(name);
    if (state === undefined) return;
    state.port = port;
    for (const passage of state.all) {
      if (port === null) passage.wait();
      else if (!passage.isThrough) this.#pass(state, passage, port);
    }
  }

  refuse(name: string, reply: Buffer): void {
    for (const passage of this.#doors.get(name)?.waiting ?? []) passage.refuse(reply);
  }

  endConnections(name: string): void {
    for (const passage of this.#doors.get(name)?.all ?? []) passage.end();
  }

  figures(name: string): DoorFigures {
    const { all, waiting, accepted } = this.#doors.get(name) ?? { all: [], waiting: [], accepted: 0 };
    const [there, outside] = [[...all].length, [...waiting].length];
    return { open: there - outside, waiting: outside, accepted };
  }

  async close(): Promise<void> {
    clearInterval(this.#looking);
    await Promise.all([...this.#doors.keys()].map((name) => this.shut(name)));
  }

  async #listen(state: State, address: string): Promise<Server> {
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
    server.on('connection', (socket) => this.#enter(state, socket));
    const { port } = state.door;
    const host = address === '*' ? {} : { host: address };
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, backlog: BACKLOG, exclusive: true, ...host }, resolve);
    });
    // Running out of descriptors ends nothing: who comes waits in the system's queue.
    server.on('error', () => {});
    return server;
  }

  #enter(state: State, socket: Socket): void {
    const { strangers, all, waiting } = state;
    const known = all.size - strangers.size;
    if (known >= MAX_OPEN || this.#count() >= MAX_ALL) return void socket.destroy();
    if (strangers.size >= MAX_STRANGERS) strangers.makeRoom();
    state.accepted++;
    const passage: Passage = new Passage(socket, now(), {
      protocol: state.door.protocol,
      heard: () => strangers.heard(passage),
      proven: () => strangers.leave(passage),
      refused: () => {
        waiting.add(passage);
        state.port = null;
        this.#wanted(state.door.name);
      },
      gone: () => {
        strangers.leave(passage);
        all.delete(passage);
        waiting.delete(passage);
      },
    });
    all.add(passage);
    waiting.add(passage);
    strangers.enter(passage);
    if (state.port !== null) this.#pass(state, passage, state.port);
    else if (waiting.size === 1) this.#wanted(state.door.name);
  }

  #pass({ waiting }: State, passage: Passage, port: number): void {
    waiting.delete(passage);
    passage.pass(port, now());
  }

  #look(): void {
    const time = now();
    for (const { door, all, waiting, port } of this.#doors.values()) {
      for (const passage of waiting) if (time - passage.since > WAIT_MS) passage.end();
      for (const passage of all) passage.age(time);
      if (port === null && waiting.size > 0) this.#wanted(door.name);
    }
  }

  #count(): number {
    let count = 0;
    for (const { all } of this.#doors.values()) count += all.size;
    return count;
  }
}

const now = () => systemClock.monotonic();
