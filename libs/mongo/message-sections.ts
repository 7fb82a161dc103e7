/** Parses an OP_MSG: the command and its document sequences. */

const LEAST_DOCUMENT_BYTES = 5;

/** A protocol error: nothing that follows can be parsed. */
export class Malformed extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'Malformed';
  }
}

export interface Sequence {
  /** The command field that it belongs to: `documents`, `updates`, … */
  readonly identifier: string;
  /** Documents of the section, concatenated. */
  readonly bytes: Buffer;
}

export interface Sections {
  /** The command. */
  readonly body: Buffer;
  readonly sequences: readonly Sequence[];
}

/** Throws Malformed. */
export function readSections(bytes: Buffer): Sections {
  let body: Buffer | null = null;
  const sequences: Sequence[] = [];
  for (let at = 0; at < bytes.length; ) {
    const kind = bytes[at];
    const size = sizeAt(bytes, ++at);
    const section = bytes.subarray(at, at + size);
    if (kind === 0 && body === null) body = section;
    else if (kind === 1) sequences.push(readSequence(section));
    else throw new Malformed(kind === 0 ? 'a message with two bodies' : 'a section of an unknown kind');
    at += size;
  }
  if (body === null) throw new Malformed('a message without a body');
  return { body, sequences };
}

function readSequence(section: Buffer): Sequence {
  const end = section.indexOf(0, 4);
  if (end === -1) throw new Malformed('a sequence without a name');
  return { identifier: section.toString('utf8', 4, end), bytes: section.subarray(end + 1) };
}

/** The documents of a sequence. Throws Malformed. */
export function readDocuments(bytes: Buffer): Buffer[] {
  const documents: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = sizeAt(bytes, at);
    documents.push(bytes.subarray(at, at + size));
    at += size;
  }
  return documents;
}

/** The length of the element at this position, which must be complete. */
export function sizeAt(bytes: Buffer, at: number): number {
  const size = at + 4 <= bytes.length ? bytes.readInt32LE(at) : 0;
  if (size < LEAST_DOCUMENT_BYTES || at + size > bytes.length) throw new Malformed('a length that is wrong');
  return size;
}
