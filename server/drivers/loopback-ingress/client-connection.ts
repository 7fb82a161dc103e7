/** One client connection: it is joined to the guest only once the guest answers. */
import type { Socket } from 'node:net';
import type { IngressRun, IngressTimings } from './machine-ingress.ts';
import { type RelayCounts, relay, reset } from './relay.ts';

export const SSH_PORT = 22;

interface ClientConnectionDeps {
  readonly client: Socket;
  readonly run: IngressRun;
  /** Port that the client connected to. */
  readonly port: number;
  readonly guestPort: number;
  readonly timings: IngressTimings;
  readonly counts: RelayCounts;
}

/** Limit of buffered client bytes, which are sent again to a guest that was not listening yet. */
const MAX_HELD_BYTES = 65_536;

export class ClientConnection {
  readonly #deps: ClientConnectionDeps;
  readonly #over = new AbortController();
  readonly #hold = (bytes: Buffer) => this.#keep(bytes);
  readonly #clientEnded = () => this.#onClientEnd();
  #held: Buffer[] = [];
  #heldBytes = 0;
  #guest: Socket | null = null;
  #isJoined = false;
  /** The wait is over: a guest that does not listen now is not retried. */
  #isLate = false;

  constructor(deps: ClientConnectionDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { client, run, guestPort, timings } = this.#deps;
    const end = () => this.#end();
    run.signal.addEventListener('abort', end);
    client.once('close', () => {
      run.signal.removeEventListener('abort', end);
      this.#over.abort();
      // Once joined, each side ends the other.
      if (this.#guest !== null && !this.#isJoined) reset(this.#guest);
    });
    client.on('data', this.#hold).on('end', this.#clientEnded);
    const giveUp = setTimeout(() => this.#giveUp(), timings.waitMs).unref();
    this.#over.signal.addEventListener('abort', () => clearTimeout(giveUp));
    void (guestPort === SSH_PORT ? this.#serverFirst() : this.#clientFirst()).then((guest) => {
      clearTimeout(giveUp);
      if (guest === null) this.#refuse();
      else this.#join(guest);
    });
  }

  /** A guest that received a request may take longer than this to answer. */
  #giveUp(): void {
    this.#isLate = true;
    if (this.#deps.guestPort === SSH_PORT) this.#over.abort();
  }

  #end(): void {
    this.#over.abort();
    if (this.#guest !== null) this.#guest.destroy();
    reset(this.#deps.client);
  }

  #keep(bytes: Buffer): void {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes >= MAX_HELD_BYTES) this.#deps.client.pause();
    if (this.#guest !== null) this.#guest.write(bytes);
  }

  /** A client that sent nothing and has closed its side does not wait for an answer. */
  #onClientEnd(): void {
    if (this.#heldBytes === 0 || this.#deps.guestPort === SSH_PORT) this.#deps.client.destroy();
    else this.#guest?.end();
  }

  async #serverFirst(): Promise<Socket | null> {
    const { run, guestPort, client } = this.#deps;
    const talk = await run.talk(guestPort, this.#over.signal);
    if (talk === null) return null;
    if (client.destroyed || run.signal.aborted) {
      reset(talk.socket);
      return null;
    }
    talk.socket.unshift(talk.first);
    for (const bytes of this.#held) talk.socket.write(bytes);
    return talk.socket;
  }

  async #clientFirst(): Promise<Socket | null> {
    const { run, guestPort, timings } = this.#deps;
    const { signal } = this.#over;
    if (!run.isAlive) await run.life(timings.holdMs, signal);
    while (!signal.aborted && !this.#isLate) {
      const guest = run.dial(guestPort);
      if (guest === null) return null;
      this.#guest = guest;
      for (const bytes of this.#held) guest.write(bytes);
      if (this.#deps.client.readableEnded) guest.end();
      const outcome = await this.#trial(guest);
      if (outcome === 'taken') return guest;
      this.#guest = null;
      guest.destroy();
      if (outcome === 'refused') {
        reset(this.#deps.client);
        return null;
      }
      await pause(timings.retryMs, signal);
    }
    return null;
  }

  /**
   * `taken`: the guest answered, or it received more than we could send again; `early`: it ended at once
   * without a byte, as a port without a listener does; `refused`: it ended later, which counts as its answer.
   * A request that a guest may have acted on is never sent twice: not after the port answered in this run.
   */
  #trial(guest: Socket): Promise<'taken' | 'early' | 'refused'> {
    const { run, guestPort, timings } = this.#deps;
    if (run.hasAnswered(guestPort)) return Promise.resolve('taken');
    return new Promise((resolve) => {
      let isEarly = true;
      const finish = (outcome: 'taken' | 'early' | 'refused') => {
        clearInterval(timer);
        guest.off('data', answered).off('end', ended).off('close', ended).pause();
        this.#over.signal.removeEventListener('abort', ended);
        resolve(outcome);
      };
      const answered = (first: Buffer) => {
        finish('taken');
        guest.unshift(first);
      };
      const ended = () => finish(isEarly ? 'early' : 'refused');
      const timer = setInterval(() => {
        isEarly = this.#heldBytes === 0;
        if (this.#heldBytes >= MAX_HELD_BYTES) finish('taken');
      }, timings.atOnceMs).unref();
      guest.on('data', answered).on('end', ended).on('close', ended);
      this.#over.signal.addEventListener('abort', ended);
    });
  }

  #join(guest: Socket): void {
    const { client, run, guestPort, counts } = this.#deps;
    client.off('data', this.#hold).off('end', this.#clientEnded);
    this.#guest = guest;
    this.#isJoined = true;
    if (client.destroyed || run.signal.aborted) {
      reset(guest);
      return;
    }
    counts.onIn(this.#heldBytes);
    this.#held = [];
    guest.once('data', () => run.answered(guestPort));
    relay(client, guest, counts);
  }

  #refuse(): void {
    const { client, port, timings } = this.#deps;
    client.off('data', this.#hold).off('end', this.#clientEnded);
    if (client.destroyed) return;
    const sent = Buffer.concat(this.#held);
    this.#held = [];
    refuse(client, { port, message: NOT_ANSWERING, sent, lingerMs: timings.lingerMs });
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms).unref();
    if (signal.aborted) done();
    else signal.addEventListener('abort', done);
  });
}

/** Ports with plain HTTP; a plain-text error would confuse TLS clients on 443. */
const HTTP_PORTS: ReadonlySet<number> = new Set([80, 8080]);

const NOT_ANSWERING = 'This virtual machine is running, but nothing answers on this port.\n';

interface Refusal {
  /** Port that the client connected to. */
  readonly port: number;
  readonly message: string;
  /** Bytes received from the client. */
  readonly sent: Buffer;
  /** How long the client may take to send a request, and to close, ms. */
  readonly lingerMs: number;
}

/** Ends the connection. */
function refuse(client: Socket, { port, message, sent, lingerMs }: Refusal): void {
  if (!HTTP_PORTS.has(port)) {
    client.destroy();
    return;
  }
  const cut = setTimeout(() => client.destroy(), lingerMs).unref();
  client.once('close', () => clearTimeout(cut));
  // Some clients treat a response before the request as an error.
  const answer = (bytes: Buffer) => {
    client.on('data', () => undefined).resume();
    client.end(response(message, bytes.toString('latin1', 0, 5) === 'HEAD '));
    cut.refresh();
  };
  client.once('end', () => client.destroySoon());
  if (sent.length > 0) answer(sent);
  else client.once('data', answer).resume();
}

function response(message: string, isHead: boolean): string {
  const head = [
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(message)}`,
    'Cache-Control: no-store',
    'Retry-After: 5',
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${isHead ? '' : message}`;
}
