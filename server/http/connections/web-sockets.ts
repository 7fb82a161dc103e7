/**
 * WebSockets on the API server. Authentication, rate limits and permission are checked before the upgrade, so
 * that a refusal is problem details like any other; the SocketRoute handles the messages.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import type { AuditTrail } from '../../calls/audit.ts';
import type { Permission, Principal } from '../../calls/principal.ts';
import type { TicketHolder } from '../../calls/tickets.ts';
import { AppError } from '../../platform/errors.ts';
import { noteOpened, noteTurnedAway } from '../audited.ts';
import { type Authenticates, assertPermitted, type ControlSockets, identify, stillGood } from '../caller.ts';
import { type Door, type Exchange, ownResponse } from '../exchange.ts';
import type { Forward } from '../forwarding/forward.ts';
import { endWith, rawProblem, toAppError } from '../response.ts';
import { hasOwnOrigin } from '../session.ts';
import { serveUpgrades, type Upgrades } from './upgrades.ts';
import { sendFrame, writeFrame } from './web-socket-frames.ts';

export type SocketParams = Readonly<Record<string, string | undefined>>;

/** The open WebSocket. */
export interface Channel {
  /**
   * Never waits: a client that reads too slowly is closed with 1013. Bytes, which must not change afterwards,
   * are sent as a binary frame and text as a text frame.
   */
  send(message: Uint8Array | string): void;
  /**
   * Sends a binary frame. Returns a promise if many bytes are pending: send the next ones when it
   * resolves, which it also does when the connection ends.
   */
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** `code`: of RFC 6455 §7.4. */
  close(code: number, reason: string): void;
}

/** A session, from before the upgrade to its end. */
export interface SocketSession {
  begin(channel: Channel): void;
  /**
   * No further message is read before it resolves, but messages that arrived together are passed on
   * at once: they should return the same promise if they wait for the same. `isText`: it was a text
   * frame.
   */
  receive(bytes: Uint8Array, isText: boolean): Promise<void> | undefined;
  /** Called once: when the connection is closed by either side, or if the upgrade failed. */
  end(): void;
}

export interface SocketRoute {
  /** `/api/vms/{vm_id}/console`, declared as a Route too, for documentation and callers without WebSocket. */
  readonly path: string;
  readonly name: string;
  readonly permission: Permission;
  /** See Route. */
  readonly livesOn?: 'host';
  /** The WebSocket opens access to a machine or database, so it is audited. */
  readonly opens?: true;
  /** The session may keep its client waiting for long; meanwhile it is not expected to answer pings. */
  readonly mayHoldUp?: boolean;
  /** The holder of `?ticket=`; consumes the ticket, and rejects if it is not valid. Missing: no tickets. */
  redeem?(ticket: string, params: SocketParams): Promise<TicketHolder>;
  /** Throws if the connection must be refused; the caller receives the error as a problem document. */
  prepare(principal: Principal, params: SocketParams, query: URLSearchParams): Promise<SocketSession>;
}

export interface WebSocketsDeps {
  readonly log: Logger;
  /** Shared with the server's other requests. */
  readonly door: Door;
  readonly accounts: Authenticates;
  readonly control: ControlSockets;
  readonly audit?: AuditTrail;
  readonly routes: readonly SocketRoute[];
  /** Address of the API behind a proxy; empty without one. */
  readonly publicUrl: string;
  /** Forwards to the host node; undefined: this is the host node. */
  readonly forward?: Forward | undefined;
  readonly pingSeconds?: number;
  readonly recheckSeconds?: number;
}

const PING_SECONDS = 30;
/** Maximum time that a connection outlives its credential. */
const RECHECK_SECONDS = 2;
const MAX_FRAME_BYTES = 64 * 1024;
/** Time from our close frame to the end of the connection if the other side does not reply. */
const CLOSE_MS = 5000;
const STOP_MS = 1000;

interface Target {
  readonly route: SocketRoute;
  readonly params: SocketParams;
  readonly query: URLSearchParams;
}

interface Connection {
  readonly exchange: Exchange;
  /** Ends the session, once. */
  readonly end: () => void;
  readonly mayHoldUp: boolean;
  /** True if the last ping was answered. A client that sends faster than we read counts as gone. */
  isAlive: boolean;
  /** Frames being received. */
  pending: number;
  /** The pending promise of the last write. */
  received?: Promise<void>;
}

export class WebSockets {
  readonly #deps: WebSocketsDeps;
  readonly #patterns: readonly { readonly route: SocketRoute; readonly pattern: RegExp }[];
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
  });
  readonly #connections = new Map<WebSocket, Connection>();
  /** Run while there are connections: an idle cloud does not wake up for them. */
  #timers: readonly NodeJS.Timeout[] = [];
  #isClosing = false;

  constructor(deps: WebSocketsDeps) {
    this.#deps = deps;
    this.#patterns = deps.routes.map((route) => ({ route, pattern: patternOf(route.path) }));
    // The library's responses to a bad handshake are not problem details.
    this.#server.on('wsClientError', (error, socket) => {
      const problem = new AppError('bad_http', `Invalid WebSocket handshake: ${error.message}`);
      endWith(socket, rawProblem(problem, deps.door.newId()));
    });
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Attaches the routes, after `others`, to a server before it listens; closes connections with it. */
  serve(app: FastifyInstance, others: readonly Upgrades[] = []): void {
    // Requests for another protocol (such as h2c), or on other paths, stay ordinary requests.
    const ours: Upgrades = {
      takes: (request) => this.#find(request) !== undefined,
      upgrade: (request, { client, head }) => {
        void this.#upgrade(this.#find(request) as Target, { request, socket: client, head });
      },
    };
    serveUpgrades(app.server, [...others, ours]);
    app.addHook('preClose', async () => this.close());
  }

  /** Closes all connections with 1001 after a short time. */
  close(): void {
    this.#isClosing = true;
    this.#deps.forward?.close();
    this.#unwatch();
    for (const socket of this.#connections.keys()) {
      this.#shut(socket, { code: 1001, reason: 'Cloudlet is stopping', withinMs: STOP_MS });
    }
  }

  #find(request: IncomingMessage): Target | undefined {
    if (request.method !== 'GET' || request.headers.upgrade?.toLowerCase() !== 'websocket') return undefined;
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    for (const { route, pattern } of this.#patterns) {
      const match = pattern.exec(path);
      if (match) return { route, params: match.groups ?? {}, query: new URLSearchParams(query) };
    }
    return undefined;
  }

  /** Forwards to the node of the resource; undefined: it is this node. */
  #forwardOf({ livesOn }: SocketRoute): Forward | undefined {
    return livesOn === 'host' ? this.#deps.forward : undefined;
  }

  async #upgrade(target: Target, { request, socket, head }: Upgrade): Promise<void> {
    const { door } = this.#deps;
    const forward = this.#forwardOf(target.route);
    const exchange = door.open(request, null, target.route.name);
    socket.on('error', () => {}); // 'close' reports the reason
    let session: SocketSession;
    try {
      if (this.#isClosing) throw new AppError('shutting_down', 'Cloudlet is stopping');
      door.admit(exchange);
      await this.#identify(target, exchange);
      ownResponse(socket, exchange.principal.accountId);
      if (forward !== undefined) {
        const onSwitch = () => door.record(exchange, 101);
        await forward.upgrade({ exchange, origin: 'api' }, { client: socket, head }, onSwitch);
        return;
      }
      session = await target.route.prepare(exchange.principal, target.params, target.query);
    } catch (thrown) {
      const error = toAppError(thrown);
      noteTurnedAway(this.#deps.audit, exchange, { action: target.route.name, error });
      door.refuseUpgrade(exchange, socket, error);
      return;
    }
    noteOpened(this.#deps.audit, exchange, target);
    let isOver = false;
    const end = () => {
      if (!isOver) session.end();
      isOver = true;
    };
    if (socket.destroyed) {
      end();
      return;
    }
    socket.once('close', end);
    door.record(exchange, 101);
    const { mayHoldUp = false } = target.route;
    const connection: Connection = { exchange, end, mayHoldUp, isAlive: true, pending: 0 };
    this.#server.handleUpgrade(request, socket, head, (webSocket) =>
      this.#run(webSocket, session, connection),
    );
  }

  /** Authorizes like the edge, and checks the origin, because browsers let any page open a WebSocket. */
  async #identify({ route, params, query }: Target, exchange: Exchange): Promise<void> {
    const { door, accounts, publicUrl } = this.#deps;
    const { raw: request, responseHeaders } = exchange;
    try {
      const ticket = query.get('ticket');
      // First, so that the ticket is consumed in any case: another page that learned it must not
      // reuse it.
      const isElsewhere = this.#forwardOf(route) !== undefined;
      const holder = ticket === null || isElsewhere ? null : await redeem(route, ticket, params);
      if (!hasOwnOrigin(request, publicUrl)) throw crossSite();
      // The ticket belongs to the host node.
      if (ticket !== null && isElsewhere) return;
      exchange.principal =
        holder === null ? await identify(request, this.#deps) : await stillGood(accounts, holder);
    } finally {
      door.limit(exchange, responseHeaders);
    }
    const { principal } = exchange;
    // Browsers send cookies from any page, but always send the origin too.
    if (principal.via === 'session' && !query.has('ticket') && request.headers.origin === undefined) {
      throw crossSite();
    }
    assertPermitted(principal, route.permission);
  }

  #run(webSocket: WebSocket, session: SocketSession, connection: Connection): void {
    this.#connections.set(webSocket, connection);
    this.#watch();
    webSocket.on('close', () => {
      this.#connections.delete(webSocket);
      if (this.#connections.size === 0) this.#unwatch();
    });
    webSocket.on('error', () => {}); // a frame too large, broken framing: ws closes with the right code
    const isAlive = () => {
      connection.isAlive = true;
    };
    // A client that does not read cannot see our pings, but may send its own.
    webSocket.on('pong', isAlive).on('ping', isAlive);
    webSocket.on('message', (data: Buffer, isBinary: boolean) => {
      // A frame that arrives after we closed the connection has no session any more.
      if (webSocket.readyState !== webSocket.OPEN) return;
      const received = session.receive(data, !isBinary);
      if (received === undefined || received === connection.received) return;
      connection.received = received;
      connection.pending++;
      webSocket.pause();
      received.then(
        () => {
          connection.pending--;
          if (connection.pending === 0) webSocket.resume();
        },
        (error: unknown) => {
          this.#deps.log.error({ err: error }, 'a WebSocket failed');
          this.#shut(webSocket, { code: 1011, reason: 'Internal error' });
        },
      );
    });
    const { exchange } = connection;
    // Until a frame has left our memory it is an unread response of its account.
    const hold = (bytes: number) => this.#deps.door.holdUnread(bytes, exchange);
    session.begin({
      send: (message) => {
        if (!sendFrame(webSocket, message, hold)) this.#shut(webSocket, TOO_SLOW);
      },
      write: (bytes) => {
        try {
          return writeFrame(webSocket, bytes, hold);
        } catch {
          this.#shut(webSocket, TOO_SLOW);
          return undefined;
        }
      },
      close: (code, reason) => void this.#end(webSocket, { code, reason }),
    });
  }

  /** Prefers "credential ended" over the session's own reason: a suspension causes both. */
  async #end(webSocket: WebSocket, ending: Ending): Promise<void> {
    const principal = this.#connections.get(webSocket)?.exchange.principal;
    const mayStay = principal === undefined || (await this.#isCurrent(principal));
    this.#shut(webSocket, mayStay ? ending : NO_LONGER);
  }

  /** Also true if the state is unknown. */
  async #isCurrent(principal: Principal): Promise<boolean> {
    try {
      return await this.#deps.accounts.isCurrent(principal);
    } catch (error) {
      this.#deps.log.error({ err: error }, 'the credential of a WebSocket could not be checked');
      return true;
    }
  }

  #watch(): void {
    if (this.#timers.length > 0 || this.#isClosing) return;
    const { pingSeconds = PING_SECONDS, recheckSeconds = RECHECK_SECONDS } = this.#deps;
    this.#timers = [
      setInterval(() => this.#ping(), pingSeconds * 1000).unref(),
      setInterval(() => void this.#recheck(), recheckSeconds * 1000).unref(),
    ];
  }

  #unwatch(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  /** Closes connections whose credential has ended. */
  async #recheck(): Promise<void> {
    for (const [webSocket, { exchange }] of this.#connections) {
      if (!(await this.#isCurrent(exchange.principal))) this.#shut(webSocket, NO_LONGER);
    }
  }

  /** Earlier frames are still delivered if the other side reads them in time; nothing more is read. */
  #shut(webSocket: WebSocket, { code, reason, withinMs = CLOSE_MS }: Ending): void {
    webSocket.resume(); // or its response would stay unread
    webSocket.close(code, reason);
    this.#connections.get(webSocket)?.end();
    setTimeout(() => webSocket.terminate(), withinMs).unref();
  }

  #ping(): void {
    for (const [webSocket, connection] of this.#connections) {
      const isHeldUp = connection.mayHoldUp && connection.pending > 0;
      if (!connection.isAlive && !isHeldUp) {
        webSocket.terminate();
        continue;
      }
      connection.isAlive = false;
      if (webSocket.readyState === webSocket.OPEN) webSocket.ping();
    }
  }
}

interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that the client sent right after its request. */
  readonly head: Buffer;
}

interface Ending {
  readonly code: number;
  readonly reason: string;
  readonly withinMs?: number;
}

const NO_LONGER: Ending = { code: 1008, reason: 'The key or session of this WebSocket has ended' };
const TOO_SLOW: Ending = { code: 1013, reason: 'Client too slow; reconnect for the latest output' };

function redeem(route: SocketRoute, ticket: string, params: SocketParams): Promise<TicketHolder> {
  if (route.redeem !== undefined) return route.redeem(ticket, params);
  throw new AppError(
    'invalid_ticket',
    'This WebSocket does not accept tickets; send an API key in X-API-Key',
  );
}

function crossSite(): AppError {
  return new AppError('cross_site_request', 'Browsers may open WebSockets only from this origin', {
    hint: 'Programs must send an API key in X-API-Key and no Origin',
  });
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
}
