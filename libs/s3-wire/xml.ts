/** XML as S3 uses it: a strict reader, and a writer. */
import { S3Error } from './s3-error.ts';

/** An element that was read. Attributes are checked and forgotten. */
export interface XmlElement {
  /** Without the namespace's prefix. */
  readonly name: string;
  /** Its own text, untrimmed, without that of its children. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

interface OpenElement extends XmlElement {
  /** With the prefix, which the closing tag must repeat. */
  readonly tag: string;
  text: string;
  readonly children: OpenElement[];
}

const MAX_DEPTH = 16;
/** Exceeds a list of 10,000 parts with checksums. */
const MAX_ELEMENTS = 100_000;
const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

const DECLARATION =
  /<\?xml\s+version\s*=\s*(?:"1\.\d"|'1\.\d')(?:\s+encoding\s*=\s*(?:"([\w.-]+)"|'([\w.-]+)'))?(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>/y;
const NAME =
  '(?:[A-Za-z_\\u0080-\\uFFFF][\\w.\\-\\u0080-\\uFFFF]*:)?[A-Za-z_\\u0080-\\uFFFF][\\w.\\-\\u0080-\\uFFFF]*';
const OPENING = new RegExp(`<(${NAME})`, 'y');
const CLOSING = new RegExp(`</(${NAME})\\s*>`, 'y');
const ATTRIBUTE = new RegExp(`\\s+(${NAME})\\s*=\\s*(?:"([^"<]*)"|'([^'<]*)')`, 'y');
const TAG_END = /\s*(\/?)>/y;
const REFERENCE = /&(?:(#x[0-9A-Fa-f]{1,6}|#[0-9]{1,7}|amp|lt|gt|quot|apos);)?/g;
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: those that XML forbids
const FORBIDDEN = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/;

/** The reason why a text is not read. */
export class XmlError extends Error {}

function malformed(why: string): XmlError {
  return new XmlError(why);
}

function characterOf(code: number, takesControls: boolean): string {
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  const isCharacter = takesControls || (code > 0 && !isSurrogate);
  if (code > 0x10ffff || !isCharacter) throw malformed('a reference to no character');
  return String.fromCodePoint(code);
}

/**
 * Line ends become LF, as XML requires; only a character reference yields a CR. References to control
 * characters are read.
 */
function plainText(raw: string, takesControls = false): string {
  if (!takesControls && FORBIDDEN.test(raw)) throw malformed('a control character');
  return raw.includes('\r') ? raw.replace(/\r\n?/g, '\n') : raw;
}

function decodedText(raw: string, takesControls = false): string {
  const text = plainText(raw, takesControls);
  if (!text.includes('&')) return text;
  return text.replace(REFERENCE, (_, body: string | undefined) => {
    if (body?.startsWith('#x')) return characterOf(Number.parseInt(body.slice(2), 16), takesControls);
    if (body?.startsWith('#')) return characterOf(Number(body.slice(1)), takesControls);
    const character = body === undefined ? undefined : NAMED[body];
    if (character === undefined) throw malformed('an undefined entity');
    return character;
  });
}

class Reader {
  readonly #text: string;
  readonly #takesControls: boolean;
  #at = 0;
  #elements = 0;
  readonly #open: OpenElement[] = [];
  #root: OpenElement | undefined;

  constructor(text: string, takesControls: boolean) {
    this.#text = text;
    this.#takesControls = takesControls;
  }

  read(): XmlElement {
    if (this.#text.startsWith('<?')) this.#declaration();
    while (this.#at < this.#text.length) {
      const next = this.#text.indexOf('<', this.#at);
      const end = next < 0 ? this.#text.length : next;
      if (end > this.#at) this.#characters(this.#text.slice(this.#at, end));
      this.#at = end;
      if (next >= 0) this.#markup();
    }
    if (this.#open.length > 0) throw malformed('an element is not closed');
    if (this.#root === undefined) throw malformed('no element');
    return this.#root;
  }

  #declaration(): void {
    const [, double, single] = this.#expect(DECLARATION, 'the XML declaration');
    if (!/^(?:utf-?8|us-ascii)$/i.test(double ?? single ?? 'utf-8')) throw malformed('not in UTF-8');
  }

  #characters(raw: string): void {
    const element = this.#open.at(-1);
    if (element === undefined) {
      if (/[^ \t\r\n]/.test(raw)) throw malformed('text outside of the root element');
      return;
    }
    if (raw.includes(']]>')) throw malformed(']]> in text');
    element.text += decodedText(raw, this.#takesControls);
  }

  #markup(): void {
    const text = this.#text;
    if (text.startsWith('</', this.#at)) this.#close();
    else if (text.startsWith('<!--', this.#at)) this.#comment();
    else if (text.startsWith('<![CDATA[', this.#at)) this.#cdata();
    else if (text.startsWith('<!', this.#at)) throw malformed('a document type');
    else if (text.startsWith('<?', this.#at)) throw malformed('a processing instruction');
    else this.#start();
  }

  #comment(): void {
    const end = this.#text.indexOf('--', this.#at + 4);
    if (end < 0 || this.#text[end + 2] !== '>') throw malformed('a comment');
    plainText(this.#text.slice(this.#at, end));
    this.#at = end + 3;
  }

  #cdata(): void {
    const element = this.#open.at(-1);
    const end = this.#text.indexOf(']]>', this.#at);
    if (element === undefined || end < 0) throw malformed('a CDATA section');
    element.text += plainText(this.#text.slice(this.#at + '<![CDATA['.length, end), this.#takesControls);
    this.#at = end + 3;
  }

  #start(): void {
    const [, tag = ''] = this.#expect(OPENING, 'a tag');
    this.#attributes();
    const [, slash] = this.#expect(TAG_END, `the tag ${tag}`);
    const element: OpenElement = { tag, name: tag.slice(tag.indexOf(':') + 1), text: '', children: [] };
    const parent = this.#open.at(-1);
    if (parent === undefined && this.#root !== undefined) throw malformed('more than one root element');
    this.#elements += 1;
    if (this.#elements > MAX_ELEMENTS) throw malformed('too many elements');
    if (parent === undefined) this.#root = element;
    parent?.children.push(element);
    if (slash === '/') return;
    if (this.#open.length >= MAX_DEPTH) throw malformed(`deeper than ${MAX_DEPTH} elements`);
    this.#open.push(element);
  }

  #attributes(): void {
    const names = new Set<string>();
    for (let found = this.#match(ATTRIBUTE); found !== null; found = this.#match(ATTRIBUTE)) {
      const [, name = '', double, single] = found;
      if (names.has(name)) throw malformed(`the attribute ${name} twice`);
      names.add(name);
      decodedText(double ?? single ?? '');
    }
  }

  #close(): void {
    const [, tag = ''] = this.#expect(CLOSING, 'a closing tag');
    if (this.#open.pop()?.tag !== tag) throw malformed(`</${tag}> closes nothing`);
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at = pattern.lastIndex;
    return found;
  }

  #expect(pattern: RegExp, what: string): RegExpExecArray {
    const found = this.#match(pattern);
    if (found === null) throw malformed(what);
    return found;
  }
}

/**
 * Reads a document, whose length the caller bounds. Throws XmlError for text that is not well-formed, and for
 * document types, custom entities, processing instructions, more than 16 levels and too many elements.
 * Prefixes of namespaces are dropped.
 */
export function readXml(text: string, takesControls = false): XmlElement {
  return new Reader(text.startsWith('\uFEFF') ? text.slice(1) : text, takesControls).read();
}

/**
 * Reads the body of a request, of at most `maxBytes`. Throws S3Error: MaxMessageLengthExceeded if it is
 * longer, MissingRequestBodyError if it is empty, MalformedXML where readXml() does, and for text that is not
 * UTF-8. `takesControls`: accepts any code point in texts, also half a surrogate pair by reference, because
 * clients write characters that XML forbids.
 */
export function parseXml(bytes: Uint8Array, maxBytes: number, takesControls = false): XmlElement {
  if (bytes.length > maxBytes) throw new S3Error('MaxMessageLengthExceeded');
  if (bytes.length === 0) throw new S3Error('MissingRequestBodyError');
  try {
    return readXml(decodedUtf8(bytes), takesControls);
  } catch (error) {
    if (!(error instanceof XmlError)) throw error;
    const why = `The XML you provided was not well-formed or not as expected: ${error.message}`;
    throw new S3Error('MalformedXML', why);
  }
}

function decodedUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw malformed('not UTF-8');
  }
}

/** The first child with that name. */
export function child(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((each) => each.name === name);
}

export function children(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((each) => each.name === name);
}

/** The text of the first child with that name. */
export function textOf(element: XmlElement, name: string): string | undefined {
  return child(element, name)?.text;
}

/** `name` may carry attributes that are escaped already: `Grantee xsi:type="Group"`. */
type XmlPair = readonly [name: string, content: XmlNode];
/** Content of an element: text, or elements in order. An element whose content is undefined is left out. */
export type XmlNode = string | number | boolean | undefined | XmlPair | readonly (XmlPair | undefined)[];

function isPair(node: XmlPair | readonly (XmlPair | undefined)[]): node is XmlPair {
  return typeof node[0] === 'string';
}

function written(node: XmlNode): string {
  if (node === undefined) return '';
  if (typeof node === 'string') return escapeXml(node);
  if (typeof node !== 'object') return String(node);
  if (!isPair(node)) return node.map(written).join('');
  const [name, content] = node;
  if (content === undefined) return '';
  return `<${name}>${written(content)}</${name.split(' ', 1)[0]}>`;
}

/** A whole document in the namespace of S3. */
export function xmlDocument(root: string, content: XmlNode): string {
  return bareDocument(`${root} xmlns="${NAMESPACE}"`, content);
}

/** A whole document in no namespace. */
export function bareDocument(root: string, content: XmlNode): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${written([root, content])}`;
}

/**
 * A key or prefix for `encoding-type=url`: percent-encoded UTF-8 except for `A-Za-z0-9-._~/`. A space is
 * `%20`, which any decoder reads; only form decoders read `+` as a space.
 */
export function encodeKey(key: string): string {
  return encodeURIComponent(key)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%2F', '/');
}

/** Decodes keys of encodeKey(). Throws URIError for other texts. */
export function decodeKey(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

/** Characters that a parser would change or reject: markup, line ends, control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys may hold them
const UNSAFE = /[\u0000-\u001F&<>"\u007F-\u009F\uFFFE\uFFFF]/g;
const REFERENCES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
]);

/**
 * Escapes text for element content and double-quoted attributes. CR, LF and tab become references, so that
 * parsers do not change them; so do characters that XML 1.0 cannot contain (`&#x1;`), as Amazon does.
 */
function escapeXml(text: string): string {
  return text.replace(
    UNSAFE,
    (character) => REFERENCES.get(character) ?? `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`,
  );
}

export interface ErrorPlace {
  /** The path that was asked for, as sent. */
  readonly resource: string;
  /** Also sent as `x-amz-request-id`. */
  readonly requestId: string;
  /** Also sent as `x-amz-id-2`. */
  readonly hostId: string;
}

/** The XML body of an error response, in Amazon's order. */
export function errorDocument(error: S3Error, { resource, requestId, hostId }: ErrorPlace): string {
  const element = (name: string, text: string) => `<${name}>${escapeXml(text)}</${name}>`;
  const fields = { ...error.fields, Resource: resource, RequestId: requestId, HostId: hostId };
  const rest = Object.entries(fields).map(([name, text]) => element(name, text));
  const body = element('Code', error.code) + element('Message', error.message) + rest.join('');
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${body}</Error>`;
}
