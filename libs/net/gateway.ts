/**
 * The services of one account's network: its name server, lent SSH keys, its databases and the S3 endpoint.
 */
import type { Duplex } from 'node:stream';
import { KeysAnswer } from './keys-answer.ts';
import { answerTo, questionIn } from './names.ts';
import * as packets from './packets.ts';
import { ipNumber, type SwitchPort } from './switch-port.ts';
import { TcpConnection } from './tcp-connection.ts';

export interface GatewayDeps {
  /** Connected machines. */
  readonly members: () => readonly SwitchPort[];
  /** The number of the account's database with that name; null: none. Rejects while that is unknown. */
  readonly findDatabase: (name: string) => Promise<number | null>;
  /** Connects to the account's database with that number; null: refused. */
  readonly dialDatabase: (from: SwitchPort, number: number, port: number) => Promise<Duplex | null>;
  /** Connects to the data origin of this cloud; null: refused. */
  readonly dialData: (port: SwitchPort) => Promise<Duplex | null>;
  /** SSH keys that open the machine now. */
  readonly keysFor: (port: SwitchPort) => Promise<readonly string[]>;
  /** Ports at which the S3 endpoint answers. */
  readonly dataPorts: ReadonlySet<number>;
  /** Monotonic, ms. */
  readonly now: () => number;
}

/** Services are `<base>.64.0.0/12`, machines the twelve bits after. */
const SERVICES = ipNumber('0.64.0.0');
const SERVICES_BITS = 20;
const DNS_SERVICE = 1;
const S3_SERVICE = 2;
const FIRST_DATABASE = 16;
const DATABASES = 2 ** SERVICES_BITS - FIRST_DATABASE;
const DNS_PORT = 53;
/** On the address of the name server, which the seed contains. */
const KEYS_PORT = 80;
const DOMAIN = '.internal';
/** Domain below which the first label is a bucket. */
const S3_NAME = 's3.internal';
const DATABASE_DOMAIN = '.db.internal';
const MAX_CONNECTIONS = 200;
/** Maximum buffered bytes per direction, for all connections and for one. */
const MAX_BYTES = 8 * 2 ** 20;
const MAX_CONNECTION_BYTES = 128 * 1024;
/** New connections and unknown names per account: burst, and rate per second. */
const BURST = 200;
const RATE = 50;
const NOTHING = Buffer.alloc(0);
const MAC = Buffer.from('5a0000000001', 'hex');

/** Cache time of database names, ms. */
const KNOWN_MS = 1000;
const MAX_KNOWN = 256;

interface Known {
  readonly at: number;
  readonly number: Promise<number | null>;
}

export class Gateway {
  readonly #deps: GatewayDeps;
  readonly #connections = new Map<
    string,
    { readonly port: SwitchPort; readonly tcp: TcpConnection | null }
  >();
  readonly #touched = new Set<TcpConnection>();
  readonly #known = new Map<string, Known>();
  #tokens = BURST;
  #filledAt = 0;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  get mac(): Buffer {
    return MAC;
  }

  isService(address: number): boolean {
    return (address & 0x00f00000) === SERVICES;
  }

  answerArp(port: SwitchPort, question: packets.ArpQuestion, mac: Buffer): void {
    port.send(packets.arpAnswer(question, mac));
  }

  receive(port: SwitchPort, packet: packets.IpPacket): void {
    if (packet.isFragment || packet.to >>> 24 !== port.ip >>> 24) return;
    if (packet.protocol === packets.PROTOCOL.udp) this.#receiveDatagram(port, packet);
    if (packet.protocol === packets.PROTOCOL.tcp) this.#receiveSegment(port, packet);
  }

  /** Sends the data that a batch of received frames made room for. */
  flush(): void {
    for (const tcp of this.#touched) tcp.flush();
    this.#touched.clear();
  }

  onRoom(port: SwitchPort): void {
    for (const { port: own, tcp } of this.#connections.values()) if (own === port) tcp?.pump();
  }

  tick(): void {
    for (const { tcp } of this.#connections.values()) tcp?.tick();
  }

  /** The machine is gone. */
  leave(port: SwitchPort): void {
    for (const { port: own, tcp } of [...this.#connections.values()]) if (own === port) tcp?.abort();
  }

  #receiveDatagram(port: SwitchPort, packet: packets.IpPacket): void {
    const datagram = packets.datagramIn(packet);
    if (datagram === null || datagram.toPort !== DNS_PORT || serviceOf(packet.to) !== DNS_SERVICE) return;
    const question = questionIn(datagram.payload);
    if (question === null) return;
    const { from, fromPort, to, toPort } = datagram;
    const ends = { from: to, fromPort: toPort, to: from, toPort: fromPort };
    const link = { from: MAC, to: port.mac };
    void this.#find(port, question.name)?.then(
      (found) => port.send(packets.datagramFrame(link, { ...ends, payload: answerTo(question, found) })),
      () => {},
    );
  }

  /** Undefined: no answer now, because there were too many questions. */
  #find(port: SwitchPort, name: string): Promise<readonly number[] | null | 'refused'> | undefined {
    const base = (port.ip >>> 24) * 2 ** 24 + SERVICES;
    if (!name.endsWith(DOMAIN)) return Promise.resolve('refused');
    if (name === S3_NAME || name.endsWith(`.${S3_NAME}`)) return Promise.resolve([base + S3_SERVICE]);
    if (name.endsWith(DATABASE_DOMAIN)) {
      const number = this.#databaseOf(name.slice(0, -DATABASE_DOMAIN.length));
      return number?.then((it) => (it === null ? null : [base + FIRST_DATABASE + (it % DATABASES)]));
    }
    const label = name.slice(0, -DOMAIN.length);
    const named = this.#deps.members().filter(({ member }) => [member.hostname, member.vmId].includes(label));
    return Promise.resolve(named.length === 0 ? null : named.map(({ ip }) => ip));
  }

  #databaseOf(name: string): Promise<number | null> | undefined {
    const now = this.#deps.now();
    const known = this.#known.get(name);
    if (known !== undefined && now - known.at < KNOWN_MS) return known.number;
    if (!this.#takeToken()) return undefined;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    const number = this.#deps.findDatabase(name);
    this.#known.set(name, { at: now, number });
    return number;
  }

  #receiveSegment(port: SwitchPort, packet: packets.IpPacket): void {
    const segment = packets.segmentIn(packet);
    if (segment === null) return;
    const key = `${segment.from}:${segment.fromPort}:${segment.to}:${segment.toPort}`;
    const known = this.#connections.get(key);
    const { syn, ack, rst } = packets.FLAG;
    if (known !== undefined) known.tcp?.receive(segment);
    else if ((segment.flags & (syn | ack | rst)) === syn) void this.#open(port, segment, key);
    else if ((segment.flags & rst) === 0) refuse(port, segment);
  }

  async #open(port: SwitchPort, syn: packets.Segment, key: string): Promise<void> {
    if (this.#connections.size >= MAX_CONNECTIONS) return refuse(port, syn);
    // Not answered: the guest retries after a second.
    if (!this.#takeToken()) return;
    this.#connections.set(key, { port, tcp: null });
    const service = await this.#dial(port, syn).catch(() => null);
    if (service === null) {
      this.#connections.delete(key);
      return refuse(port, syn);
    }
    if (!this.#deps.members().includes(port)) {
      this.#connections.delete(key);
      service.destroy();
      return;
    }
    const ends = { from: syn.to, fromPort: syn.toPort, to: syn.from, toPort: syn.fromPort };
    const link = { from: MAC, to: port.mac };
    const tcp = new TcpConnection(syn, service, {
      emit: (segment) => port.send(packets.segmentFrame(link, { ...segment, ...ends })),
      isWireFull: () => port.isBusy,
      budget: () => Math.min(MAX_CONNECTION_BYTES, Math.floor(MAX_BYTES / this.#connections.size)),
      soon: (connection) => this.#soon(connection),
      now: this.#deps.now,
      onClosed: () => this.#connections.delete(key),
    });
    this.#connections.set(key, { port, tcp });
  }

  #dial(port: SwitchPort, { to, toPort }: packets.Segment): Promise<Duplex | null> {
    const service = serviceOf(to);
    if (service === DNS_SERVICE && toPort === KEYS_PORT)
      return Promise.resolve(new KeysAnswer(() => this.#deps.keysFor(port)));
    if (service >= FIRST_DATABASE) return this.#deps.dialDatabase(port, service - FIRST_DATABASE, toPort);
    const isS3 = service === S3_SERVICE && this.#deps.dataPorts.has(toPort);
    return isS3 ? this.#deps.dialData(port) : Promise.resolve(null);
  }

  #soon(connection: TcpConnection): void {
    if (this.#touched.size === 0) setImmediate(() => this.flush());
    this.#touched.add(connection);
  }

  #takeToken(): boolean {
    const now = this.#deps.now();
    this.#tokens = Math.min(BURST, this.#tokens + ((now - this.#filledAt) / 1000) * RATE);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

function serviceOf(address: number): number {
  return address & (2 ** SERVICES_BITS - 1);
}

/** RFC 9293 §3.10.7.1. */
function refuse(port: SwitchPort, segment: packets.Segment): void {
  const { from, fromPort, to, toPort, seq, flags, payload } = segment;
  const { syn, fin, ack, rst } = packets.FLAG;
  const bytes = payload.length + ((flags & syn) === 0 ? 0 : 1) + ((flags & fin) === 0 ? 0 : 1);
  const isAcknowledging = (flags & ack) !== 0;
  const reset: packets.Segment = {
    from: to,
    fromPort: toPort,
    to: from,
    toPort: fromPort,
    seq: isAcknowledging ? segment.ack : 0,
    ack: isAcknowledging ? 0 : (seq + bytes) >>> 0,
    flags: isAcknowledging ? rst : rst | ack,
    window: 0,
    options: NOTHING,
    payload: NOTHING,
  };
  port.send(packets.segmentFrame({ from: MAC, to: port.mac }, reset));
}
