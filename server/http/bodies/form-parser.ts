/**
 * Parses a multipart/form-data body incrementally (RFC 7578, RFC 2046 §5.1). It buffers only bytes that may
 * be the beginning of a boundary or of a part's headers.
 */

export interface PartHead {
  readonly name: string;
  /** The file name as sent; undefined if the part has none. */
  readonly fileName: string | undefined;
  /** Lower case, without parameters; default: `text/plain`. */
  readonly type: string;
  /** The charset of the part's Content-Type; undefined: none. */
  readonly charset: string | undefined;
}

export interface FormEvents {
  onPart(head: PartHead): void;
  /**
   * At most once per write for the same part, never with zero bytes. The bytes are valid only
   * during the call.
   */
  onBytes(bytes: Buffer): void;
  onPartEnd(): void;
}

/** The problem of a malformed form, worded for its sender. */
export class MalformedForm extends Error {}

const MAX_HEADER_BYTES = 16 * 1024;
/** Maximum blanks after a delimiter (RFC 2046 §5.1.1), which no client sends. */
const MAX_PADDING_BYTES = 256;
const CR = 0x0d;
const DASHES = 0x2d2d;
const LINE_END = 0x0d0a;
const LINE_END_BYTES = Buffer.from('\r\n');
const HEADERS_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);

/** Throws MalformedForm if the Content-Type has no boundary. */
export function boundaryOf(contentType: string): string {
  const [, quoted, bare] =
    /;\s*boundary=(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200})(?=[\s;]|$))/i.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) throw new MalformedForm('the Content-Type has no boundary');
  return boundary;
}

export class FormParser {
  readonly #events: FormEvents;
  readonly #delimiter: Buffer;
  #state: 'preamble' | 'delimiter' | 'headers' | 'body' | 'end' = 'preamble';
  /** Bytes not parsed yet. The first delimiter needs no line end before it, so one is prepended. */
  #rest: Buffer = LINE_END_BYTES;

  constructor(boundary: string, events: FormEvents) {
    this.#events = events;
    // Headers are decoded as one character per byte.
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  }

  /** True after the closing delimiter; later bytes are ignored. */
  get hasEnded(): boolean {
    return this.#state === 'end';
  }

  /**
   * `piece` is not referenced afterwards. Throws MalformedForm and what the events throw; the parser is then
   * unusable.
   */
  write(piece: Buffer): void {
    let at = this.#passFirstDelimiter(piece);
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    this.#rest = NOTHING;
    let understood = true;
    while (understood && this.#state !== 'end') {
      const state = this.#state;
      const next = this.#step(bytes, at);
      understood = next !== at || state !== this.#state;
      at = next;
    }
    if (this.#state !== 'end' && at < bytes.length) this.#rest = Buffer.from(bytes.subarray(at));
  }

  /** Nearly every body starts with its first delimiter, which then needs no copy after a line end. */
  #passFirstDelimiter(piece: Buffer): number {
    const { length } = this.#delimiter;
    if (this.#rest !== LINE_END_BYTES || piece.length < length - 2) return 0;
    if (piece.compare(this.#delimiter, 2, length, 0, length - 2) !== 0) return 0;
    this.#rest = NOTHING;
    this.#state = 'delimiter';
    return length - 2;
  }

  /** The next position; `at` itself, in the same state, if more bytes are needed. */
  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case 'delimiter':
        return this.#passDelimiter(bytes, at);
      case 'headers':
        return this.#readHeaders(bytes, at);
      default:
        return this.#readBody(bytes, at);
    }
  }

  #readBody(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(this.#delimiter, at);
    const end = found === -1 ? this.#possibleDelimiter(bytes, at) : found;
    if (this.#state === 'body') {
      if (end > at) this.#events.onBytes(bytes.subarray(at, end));
      if (found !== -1) this.#events.onPartEnd();
    }
    if (found === -1) return end;
    this.#state = 'delimiter';
    return found + this.#delimiter.length;
  }

  /** Position where a delimiter may begin in the last bytes; the end if none does. */
  #possibleDelimiter(bytes: Buffer, at: number): number {
    const from = Math.max(at, bytes.length - this.#delimiter.length + 1);
    for (let cr = bytes.indexOf(CR, from); cr !== -1; cr = bytes.indexOf(CR, cr + 1)) {
      if (this.#delimiter.subarray(0, bytes.length - cr).equals(bytes.subarray(cr))) return cr;
    }
    return bytes.length;
  }

  #passDelimiter(bytes: Buffer, at: number): number {
    let end = at;
    while (bytes[end] === 0x20 || bytes[end] === 0x09) end++;
    if (end - at > MAX_PADDING_BYTES)
      throw new MalformedForm('a boundary is followed by too much white space');
    if (end + 2 > bytes.length) return at;
    const two = bytes.readUInt16BE(end);
    if (two === LINE_END) this.#state = 'headers';
    else if (two === DASHES && end === at) this.#state = 'end';
    else throw new MalformedForm('a boundary is followed by other characters');
    return end;
  }

  /** `at` is at the line end before the first header, so that an empty header block needs no special case. */
  #readHeaders(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(HEADERS_END, at);
    if ((end === -1 ? bytes.length : end) - at > MAX_HEADER_BYTES) {
      throw new MalformedForm('the headers of a part are longer than 16 KiB');
    }
    if (end === -1) return at;
    this.#events.onPart(parseHead(bytes.toString('utf8', at + 2, end)));
    this.#state = 'body';
    return end + 4;
  }
}

/** Throws MalformedForm unless these are the headers of a part with a name. */
function parseHead(text: string): PartHead {
  let disposition: Parameters | undefined;
  let contentType: Parameters | undefined;
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    const header = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (header === 'content-disposition') disposition ??= parseParameters(line.slice(colon + 1));
    else if (header === 'content-type') contentType ??= parseParameters(line.slice(colon + 1));
    else if (!/^[!#$%&'*+.^\w`|~-]+$/.test(header)) throw malformedHeader();
  }
  const name = disposition?.parameters.get('name');
  if (disposition?.value !== 'form-data' || name === undefined) {
    throw new MalformedForm('a part has no Content-Disposition: form-data with a name');
  }
  const { parameters } = disposition;
  const extended = parameters.get('filename*');
  return {
    name,
    fileName: extended === undefined ? parameters.get('filename') : decodeExtended(extended),
    type: contentType?.value || 'text/plain',
    charset: contentType?.parameters.get('charset'),
  };
}

interface Parameters {
  readonly value: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const PARAMETER = /\s*;\s*([!#$%&'*+.^\w`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\[\s\S])*)"|([^;"\s]*))/y;

/**
 * `form-data; name="a"; filename="b"`. In quotes a backslash is literal, as in the paths that some clients
 * send, unless a quote or a backslash follows.
 */
function parseParameters(text: string): Parameters {
  const separator = text.indexOf(';');
  const end = separator === -1 ? text.length : separator;
  const parameters = new Map<string, string>();
  let at = end;
  PARAMETER.lastIndex = at;
  for (let match = PARAMETER.exec(text); match !== null; match = PARAMETER.exec(text)) {
    const [, name = '', quoted, bare = ''] = match;
    parameters.set(name.toLowerCase(), quoted === undefined ? bare : unquote(quoted));
    at = PARAMETER.lastIndex;
  }
  if (at < text.length && !/^[;\s]*$/.test(text.slice(at))) throw malformedHeader();
  return { value: text.slice(0, end).trim().toLowerCase(), parameters };
}

function unquote(text: string): string {
  return text.includes('\\') ? text.replace(/\\(["\\])/g, '$1') : text;
}

function malformedHeader(): MalformedForm {
  return new MalformedForm('a part has a malformed header');
}

/** `UTF-8''na%C3%AFve.txt` (RFC 8187), which some clients send for non-ASCII names. */
function decodeExtended(text: string): string {
  const [, charset = '', encoded = ''] = /^([\w-]+)'[^']*'(.*)$/.exec(text) ?? [];
  const bytes = Buffer.from(
    encoded.replace(/%([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  return decodeText(bytes, charset);
}

/** Invalid bytes become U+FFFD. Throws MalformedForm for an unknown charset. */
export function decodeText(bytes: Uint8Array, charset: string): string {
  try {
    // A byte order mark is part of the value.
    return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new MalformedForm('a part has an unknown charset', { cause });
  }
}
