/** Reads and builds Ethernet frames of IPv4: RFC 791, 768, 826, 9293. Numbers of addresses are unsigned. */

export const ARP = 0x0806;
export const IPV4 = 0x0800;
export const PROTOCOL = { icmp: 1, tcp: 6, udp: 17 } as const;
/** Offsets of a frame's parts, and the length of the prefix on the wire to QEMU. */
export const LENGTH_BYTES = 4;
export const ETHERNET_BYTES = 14;
const IP_BYTES = 20;
const TCP_BYTES = 20;
const UDP_BYTES = 8;
const ARP_BYTES = 28;
const TTL = 64;
const DO_NOT_FRAGMENT = 0x4000;

export interface Link {
  /** 6 bytes. */
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** An IPv4 packet in a frame. */
export interface IpPacket {
  readonly from: number;
  readonly to: number;
  readonly protocol: number;
  /** The packet is a fragment. */
  readonly isFragment: boolean;
  readonly payload: Buffer;
}

/** null: not a whole IPv4 packet. */
export function ipPacketIn(frame: Buffer): IpPacket | null {
  if (frame.length < ETHERNET_BYTES + IP_BYTES) return null;
  const first = frame[ETHERNET_BYTES] as number;
  const headerBytes = (first & 15) * 4;
  const totalBytes = frame.readUInt16BE(ETHERNET_BYTES + 2);
  if (first >> 4 !== 4 || headerBytes < IP_BYTES || totalBytes < headerBytes) return null;
  if (ETHERNET_BYTES + totalBytes > frame.length) return null;
  return {
    from: frame.readUInt32BE(ETHERNET_BYTES + 12),
    to: frame.readUInt32BE(ETHERNET_BYTES + 16),
    protocol: frame[ETHERNET_BYTES + 9] as number,
    isFragment: (frame.readUInt16BE(ETHERNET_BYTES + 6) & 0x3fff) !== 0,
    payload: frame.subarray(ETHERNET_BYTES + headerBytes, ETHERNET_BYTES + totalBytes),
  };
}

export interface ArpQuestion {
  readonly senderMac: Buffer;
  readonly sender: number;
  readonly target: number;
}

/** null: the frame is not a request for an IPv4 address. */
export function arpQuestionIn(frame: Buffer): ArpQuestion | null {
  if (frame.length < ETHERNET_BYTES + ARP_BYTES) return null;
  // Ethernet, IPv4, lengths of 6 and 4, request.
  if (frame.readUInt32BE(14) !== 0x00010800 || frame.readUInt32BE(18) !== 0x06040001) return null;
  return {
    senderMac: frame.subarray(22, 28),
    sender: frame.readUInt32BE(28),
    target: frame.readUInt32BE(38),
  };
}

/** The answer to `question`: `mac` belongs to its target. All packets here have a length prefix. */
export function arpAnswer(question: ArpQuestion, mac: Uint8Array): Buffer {
  const frame = newFrame({ from: mac, to: question.senderMac }, ARP, ARP_BYTES);
  const at = LENGTH_BYTES + ETHERNET_BYTES;
  frame.writeUInt32BE(0x00010800, at);
  frame.writeUInt32BE(0x06040002, at + 4);
  frame.set(mac, at + 8);
  frame.writeUInt32BE(question.target, at + 14);
  frame.set(question.senderMac, at + 18);
  frame.writeUInt32BE(question.sender, at + 24);
  return frame;
}

export interface Ends {
  readonly from: number;
  readonly fromPort: number;
  readonly to: number;
  readonly toPort: number;
}

export interface Datagram extends Ends {
  readonly payload: Buffer;
}

/** null: truncated. */
export function datagramIn({ from, to, payload }: IpPacket): Datagram | null {
  if (payload.length < UDP_BYTES) return null;
  const bytes = payload.readUInt16BE(4);
  if (bytes < UDP_BYTES || bytes > payload.length) return null;
  const [fromPort, toPort] = [payload.readUInt16BE(0), payload.readUInt16BE(2)];
  return { from, fromPort, to, toPort, payload: payload.subarray(UDP_BYTES, bytes) };
}

export function datagramFrame(link: Link, { payload, ...ends }: Datagram): Buffer {
  const frame = newFrame(link, IPV4, IP_BYTES + UDP_BYTES + payload.length);
  const at = writeIpHeader(frame, ends, PROTOCOL.udp);
  frame.writeUInt16BE(ends.fromPort, at);
  frame.writeUInt16BE(ends.toPort, at + 2);
  // No checksum, which IPv4 allows: frames are passed in this host's memory.
  frame.writeUInt16BE(UDP_BYTES + payload.length, at + 4);
  frame.set(payload, at + UDP_BYTES);
  return frame;
}

export const FLAG = { fin: 1, syn: 2, rst: 4, psh: 8, ack: 16 } as const;

export interface Segment extends Ends {
  readonly seq: number;
  readonly ack: number;
  readonly flags: number;
  /** Window size as in the header, not scaled. */
  readonly window: number;
  readonly options: Uint8Array;
  readonly payload: Buffer;
}

/** null: truncated. */
export function segmentIn({ from, to, payload }: IpPacket): Segment | null {
  if (payload.length < TCP_BYTES) return null;
  const headerBytes = ((payload[12] as number) >> 4) * 4;
  if (headerBytes < TCP_BYTES || headerBytes > payload.length) return null;
  return {
    from,
    fromPort: payload.readUInt16BE(0),
    to,
    toPort: payload.readUInt16BE(2),
    seq: payload.readUInt32BE(4),
    ack: payload.readUInt32BE(8),
    flags: payload[13] as number,
    window: payload.readUInt16BE(14),
    options: payload.subarray(TCP_BYTES, headerBytes),
    payload: payload.subarray(headerBytes),
  };
}

/** `options`: a multiple of four bytes. */
export function segmentFrame(link: Link, segment: Segment): Buffer {
  const { options, payload, seq, ack, flags, window } = segment;
  const tcpBytes = TCP_BYTES + options.length + payload.length;
  const frame = newFrame(link, IPV4, IP_BYTES + tcpBytes);
  const at = writeIpHeader(frame, segment, PROTOCOL.tcp);
  frame.writeUInt16BE(segment.fromPort, at);
  frame.writeUInt16BE(segment.toPort, at + 2);
  frame.writeUInt32BE(seq, at + 4);
  frame.writeUInt32BE(ack, at + 8);
  frame.writeUInt16BE(((TCP_BYTES + options.length) << 10) | flags, at + 12);
  frame.writeUInt16BE(window, at + 14);
  frame.set(options, at + TCP_BYTES);
  frame.set(payload, at + TCP_BYTES + options.length);
  // The pseudo header: addresses, protocol, length.
  const pseudo = sumOf(frame, at - 8, 8) + PROTOCOL.tcp + tcpBytes;
  frame.writeUInt16BE(complement(pseudo + sumOf(frame, at, tcpBytes)), at + 16);
  return frame;
}

/** Maximum segment size and window scale that a SYN names; RFC 9293 §3.2, RFC 7323. */
export function synOptionsIn(options: Uint8Array): { readonly mss: number; readonly scale: number | null } {
  let mss = 536;
  let scale: number | null = null;
  for (let at = 0; at < options.length; ) {
    const kind = options[at] as number;
    if (kind === 0) break;
    const bytes = kind === 1 ? 1 : (options[at + 1] ?? 0);
    if (bytes < 1 || (kind !== 1 && bytes < 2) || at + bytes > options.length) break;
    if (kind === 2 && bytes === 4) mss = ((options[at + 2] as number) << 8) | (options[at + 3] as number);
    if (kind === 3 && bytes === 3) scale = Math.min(options[at + 2] as number, 14);
    at += bytes;
  }
  return { mss, scale };
}

function newFrame({ from, to }: Link, type: number, bytes: number): Buffer {
  const frame = Buffer.alloc(LENGTH_BYTES + ETHERNET_BYTES + bytes);
  frame.writeUInt32BE(ETHERNET_BYTES + bytes, 0);
  frame.set(to, LENGTH_BYTES);
  frame.set(from, LENGTH_BYTES + 6);
  frame.writeUInt16BE(type, LENGTH_BYTES + 12);
  return frame;
}

/** Returns the offset of the payload. */
function writeIpHeader(frame: Buffer, { from, to }: Pick<Ends, 'from' | 'to'>, protocol: number): number {
  const at = LENGTH_BYTES + ETHERNET_BYTES;
  frame[at] = 0x45;
  frame.writeUInt16BE(frame.length - at, at + 2);
  frame.writeUInt16BE(DO_NOT_FRAGMENT, at + 6);
  frame[at + 8] = TTL;
  frame[at + 9] = protocol;
  frame.writeUInt32BE(from, at + 12);
  frame.writeUInt32BE(to, at + 16);
  frame.writeUInt16BE(complement(sumOf(frame, at, IP_BYTES)), at + 10);
  return at + IP_BYTES;
}

/** The checksum of 16-bit words, padded with zero; RFC 1071. */
function sumOf(bytes: Buffer, from: number, count: number): number {
  let sum = 0;
  const end = from + count;
  for (let at = from; at + 1 < end; at += 2) sum += ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
  return count % 2 === 1 ? sum + ((bytes[end - 1] as number) << 8) : sum;
}

function complement(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x10000);
  return ~folded & 0xffff;
}
