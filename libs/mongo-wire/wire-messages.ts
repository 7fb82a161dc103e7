/**
 * Messages of MongoDB's wire protocol, as bytes. Documents are not parsed here: those of clients
 * are parsed in the process of their own database.
 */
import { crc32c } from '@node-rs/crc32';
import { Malformed, readSections, type Sections, sizeAt } from '../mongo/index.ts';

export const OP = { reply: 1, query: 2004, message: 2013 } as const;
/** Message size limit of a real server, bytes. */
export const MAX_MESSAGE_BYTES = 48_000_000;
export const HEADER_BYTES = 16;
const FLAGS_BYTES = 4;
const CHECKSUM_BYTES = 4;
const FLAG = { checksumPresent: 1, moreToCome: 2 };
/** Flags that a reader must understand; others may be ignored. */
const REQUIRED_FLAGS = 0xffff;
/** Flag for monitors older than OP_MSG, which keep using OP_QUERY. */
const AWAIT_CAPABLE = 8;

export interface CommandMessage extends Sections {
  /** The sections as received. */
  readonly bytes: Buffer;
  /** No reply is expected. */
  readonly moreToCome: boolean;
}

/** Reads an OP_MSG, header included. Throws Malformed. */
export function readCommandMessage(message: Buffer): CommandMessage {
  const from = HEADER_BYTES + FLAGS_BYTES;
  if (message.length < from) throw new Malformed('a message without flags');
  const flags = message.readUInt32LE(HEADER_BYTES);
  if ((flags & REQUIRED_FLAGS & ~(FLAG.checksumPresent | FLAG.moreToCome)) !== 0)
    throw new Malformed('a message with unknown flags');
  const bytes = message.subarray(from, endOf(message, flags));
  return { ...readSections(bytes), bytes, moreToCome: (flags & FLAG.moreToCome) !== 0 };
}

function endOf(message: Buffer, flags: number): number {
  if ((flags & FLAG.checksumPresent) === 0) return message.length;
  const end = message.length - CHECKSUM_BYTES;
  if (end < HEADER_BYTES || crc32c(message.subarray(0, end)) !== message.readUInt32LE(end))
    throw new Malformed('a message whose checksum is wrong');
  return end;
}

/** The command of an OP_QUERY, which is only used for handshakes now. Throws Malformed. */
export function readQuery(message: Buffer): Buffer {
  const nameAt = HEADER_BYTES + FLAGS_BYTES;
  const nameEnd = message.indexOf(0, nameAt);
  const at = nameEnd + 1 + 8;
  if (nameEnd === -1 || !message.toString('latin1', nameAt, nameEnd).endsWith('.$cmd'))
    throw new Malformed('a query that is not a command');
  return message.subarray(at, at + sizeAt(message, at));
}

interface Reply {
  readonly requestId: number;
  readonly responseTo: number;
  readonly document: Uint8Array;
}

/** In two pieces, so that no document is copied. */
export function writeMessage({ requestId, responseTo, document }: Reply): [Uint8Array, Uint8Array] {
  const start = Buffer.alloc(HEADER_BYTES + FLAGS_BYTES + 1);
  writeHeader(start, [start.length + document.length, requestId, responseTo, OP.message]);
  return [start, document];
}

/** Same as writeMessage(), in reply to an OP_QUERY. */
export function writeQueryReply({ requestId, responseTo, document }: Reply): [Uint8Array, Uint8Array] {
  const start = Buffer.alloc(HEADER_BYTES + 20);
  writeHeader(start, [start.length + document.length, requestId, responseTo, OP.reply]);
  start.writeInt32LE(AWAIT_CAPABLE, HEADER_BYTES);
  start.writeInt32LE(1, HEADER_BYTES + 16);
  return [start, document];
}

function writeHeader(start: Buffer, header: readonly number[]): void {
  header.forEach((value, index) => {
    start.writeInt32LE(value, index * 4);
  });
}
