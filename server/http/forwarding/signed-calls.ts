/**
 * A request that a node forwards to another carries its caller in a header signed with the cluster secret,
 * which is stored sealed in the metadata. The signature covers method and path. A header is valid once, at
 * the one process that it names, and until the process that wrote it has ended, so a stolen header is
 * worthless. The nodes' clocks may differ, so the header contains no time.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Membership } from '../../platform/membership.ts';

export const FORWARDED_HEADER = 'x-cloudlet-forwarded';

/** Facts about a request that only the first node knows. */
export interface PassedCall {
  /** Origin of the request. On `api` it was authenticated and rate-limited; `port` is a raw connection. */
  readonly origin: 'api' | 'data' | 'port';
  /** Address of the client. */
  readonly address: string;
  readonly requestId: string;
  /** True if the request came over the control socket of the first node. */
  readonly isOperator: boolean;
  /** Host that the client called at the first node: `cloud.example.org:8080`. */
  readonly host: string;
  readonly isSecure: boolean;
}

export interface ForwardedCall extends PassedCall {
  /** Why a request is refused although a node has signed it. */
  readonly refusal: AppError | null;
}

/** Requests forwarded by other nodes. */
export interface Forwarded {
  /** undefined: sent by a client, whatever its headers say. */
  of(request: IncomingMessage): ForwardedCall | undefined;
  /** True if a node has forwarded requests from this address. */
  isNode(address: string): boolean;
}

interface Fields extends PassedCall {
  /** Processes of nodes, by run id. */
  readonly from: string;
  readonly to: string;
  readonly number: number;
}

export type CallsMembership = Pick<Membership, 'runId' | 'isHost' | 'isGone'>;

type Signed = Pick<IncomingMessage, 'method' | 'url'>;

export interface SignedCallsDeps {
  /** The secret of the cluster. */
  readonly secret: Uint8Array;
  readonly membership: CallsMembership;
  readonly clock: Pick<Clock, 'monotonic'>;
}

interface Sender {
  readonly numbers: SeenNumbers;
  /** Monotonic time of its first call, ms. */
  readonly since: number;
  wasListed: boolean;
}

/** Time after which the other nodes have listed a new node, at one heartbeat per second. */
const NEW_MS = 10_000;

export class SignedCalls implements Forwarded {
  readonly #secret: Uint8Array;
  readonly #membership: CallsMembership;
  readonly #known = new WeakMap<IncomingMessage, { readonly call: ForwardedCall | undefined }>();
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #senders = new Map<string, Sender>();
  /** Runs of sending nodes that have ended. */
  readonly #ended = new Set<string>();
  readonly #addresses = new Set<string>();
  #number = 0;

  constructor({ secret, membership, clock }: SignedCallsDeps) {
    this.#secret = secret;
    this.#membership = membership;
    this.#clock = clock;
  }

  /** The header's value for this request to the process `to`. */
  sign(request: Signed, call: PassedCall, to: string): string {
    const fields: Fields = { ...call, from: this.#membership.runId, to, number: ++this.#number };
    const text = Buffer.from(JSON.stringify(fields)).toString('base64url');
    return `${text}.${this.#signatureOf(request, text).toString('base64url')}`;
  }

  of(request: IncomingMessage): ForwardedCall | undefined {
    const value = request.headers[FORWARDED_HEADER];
    if (value === undefined) return undefined;
    let known = this.#known.get(request);
    if (known === undefined) {
      known = { call: typeof value === 'string' ? this.#read(request, value) : undefined };
      this.#known.set(request, known);
    }
    return known.call;
  }

  isNode(address: string): boolean {
    return this.#addresses.has(address);
  }

  #read(request: IncomingMessage, value: string): ForwardedCall | undefined {
    const [text = '', given = ''] = value.split('.', 2);
    const right = this.#signatureOf(request, text);
    const signature = Buffer.from(given, 'base64url');
    if (signature.length !== right.length || !timingSafeEqual(signature, right)) return undefined;
    const fields = JSON.parse(Buffer.from(text, 'base64url').toString()) as Fields;
    const refusal = this.#refusalOf(fields);
    if (refusal === null) this.#addresses.add(request.socket.remoteAddress ?? '');
    return { ...fields, refusal };
  }

  #refusalOf({ from, to, number }: Fields): AppError | null {
    const members = this.#membership;
    if (!members.isHost)
      return refused('The node that received the forwarded request does not have the machines and databases');
    if (to !== members.runId) return refused('The node with the machines and databases was started again');
    const sender = this.#senderOf(from);
    if (sender === undefined)
      return refused('The node that forwarded the request is no longer in the cluster');
    return sender.numbers.take(number) ? null : refused('The request was already forwarded');
  }

  /** undefined: the sender has ended. A node that just started is not listed yet. */
  #senderOf(from: string): Sender | undefined {
    if (this.#ended.has(from)) return undefined;
    const now = this.#clock.monotonic();
    const isListed = !this.#membership.isGone(from);
    const known = this.#senders.get(from);
    const sender = known ?? { numbers: new SeenNumbers(), since: now, wasListed: false };
    sender.wasListed ||= isListed;
    const isNew = !sender.wasListed && now - sender.since < NEW_MS;
    if (isListed || isNew) {
      if (known === undefined) this.#senders.set(from, sender);
      return sender;
    }
    this.#senders.delete(from);
    this.#ended.add(from);
    return undefined;
  }

  #signatureOf({ method, url }: Signed, text: string): Buffer {
    return createHmac('sha256', this.#secret).update(`${method}\n${url}\n${text}`).digest();
  }
}

function refused(why: string): AppError {
  return new AppError('host_unreachable', `The request did not reach the host node: ${why}`);
}

/** Maximum reordering of requests between connections. */
const WINDOW = 10_000;

/**
 * Numbers of one sender: each is accepted once, and a number far below the highest is refused (RFC
 * 4303 §3.4.3).
 */
export class SeenNumbers {
  readonly #taken = new Set<number>();
  #highest = 0;

  /** False: the number was used before, or may have been. */
  take(number: number): boolean {
    const floor = Math.max(this.#highest, number) - WINDOW;
    if (number <= floor || this.#taken.has(number)) return false;
    if (floor > this.#highest) this.#taken.clear();
    else for (let old = this.#highest - WINDOW + 1; old <= floor; old++) this.#taken.delete(old);
    this.#highest = Math.max(this.#highest, number);
    this.#taken.add(number);
    return true;
  }
}
