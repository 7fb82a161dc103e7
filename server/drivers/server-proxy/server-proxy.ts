/** placeholder: replaced by the real one */
import { connect, createServer, type Server, type Socket } from 'node:net';
export interface Door {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly protocol: 'postgresql' | 'mysql';
}
export interface DoorFigures {
  readonly open: number;
  readonly waiting: number;
  readonly idleMs: number;
  readonly accepted: number;
}
export interface ServerProxyDeps {
  readonly wanted: (door: string) => void;
  readonly warn: (text: string) => void;
  readonly table: string;
}
interface State {
  server: Server;
  to: number | null;
  waiting: Set<Socket>;
  open: Set<Socket>;
}
export class ServerProxy {
  readonly #deps: ServerProxyDeps;
  readonly #doors = new Map<string, State>();
  readonly directProblem: string | null = null;
  constructor(deps: ServerProxyDeps) {
    this.#deps = deps;
  }
  async open(door: Door): Promise<void> {
    if (this.#doors.has(door.name)) return;
    const state: State = {
      server: createServer({ noDelay: true, allowHalfOpen: true }),
      to: null,
      waiting: new Set(),
      open: new Set(),
    };
    state.server.on('connection', (socket) => {
      socket.on('error', () => {});
      if (state.to === null) {
        state.waiting.add(socket);
        socket.on('close', () => state.waiting.delete(socket));
        this.#deps.wanted(door.name);
        return;
      }
      this.#pass(state, socket);
    });
    await new Promise<void>((resolve, reject) => {
      state.server.once('error', reject);
      state.server.listen(door.port, '127.0.0.1', resolve);
    });
    state.server.unref();
    this.#doors.set(door.name, state);
  }
  #pass(state: State, socket: Socket): void {
    const to = connect({ port: state.to as number, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    state.open.add(socket);
    socket.on('close', () => {
      state.open.delete(socket);
      to.destroy();
    });
    to.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.pipe(to);
    to.pipe(socket);
  }
  async shut(name: string): Promise<void> {
    const state = this.#doors.get(name);
    if (!state) return;
    this.endConnections(name);
    this.#doors.delete(name);
    await new Promise((resolve) => state.server.close(resolve));
  }
  async lead(name: string, port: number | null): Promise<void> {
    const state = this.#doors.get(name);
    if (!state) return;
    state.to = port;
    if (port === null) return;
    for (const socket of state.waiting) this.#pass(state, socket);
    state.waiting.clear();
  }
  refuse(name: string, reply: Buffer): void {
    for (const socket of this.#doors.get(name)?.waiting ?? []) socket.end(reply);
  }
  endConnections(name: string): void {
    const state = this.#doors.get(name);
    for (const socket of [...(state?.waiting ?? []), ...(state?.open ?? [])]) socket.destroy();
  }
  async figures(name: string): Promise<DoorFigures> {
    const state = this.#doors.get(name);
    return { open: state?.open.size ?? 0, waiting: state?.waiting.size ?? 0, idleMs: 0, accepted: 0 };
  }
  async close(): Promise<void> {
    for (const name of [...this.#doors.keys()]) await this.shut(name);
  }
}
