/** A strict reader of the small XML documents that S3 answers: elements and text, without mixed content. */

export interface XmlElement {
  /** Without its namespace prefix. */
  readonly name: string;
  /** The text directly in it, decoded. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

const MAX_DEPTH = 16;
const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
const TAG =
  /^<(\/?)([A-Za-z_][\w.-]*)(?::([A-Za-z_][\w.-]*))?((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/;

/** The root element. Throws an Error on anything but one well-formed element, on a DOCTYPE too. */
export function readXml(text: string): XmlElement {
  let rest = text.replace(/^\uFEFF?\s*(?:<\?xml[^>]*\?>)?\s*/, '');
  const open: { name: string; tag: string; text: string; children: XmlElement[] }[] = [];
  for (;;) {
    const next = rest.indexOf('<');
    const parent = open.at(-1);
    if (next < 0) throw new Error('XML ends inside an element');
    if (parent !== undefined) parent.text += decode(rest.slice(0, next));
    else if (rest.slice(0, next).trim() !== '') throw new Error('XML has text outside of its root');
    rest = rest.slice(next);
    const match = TAG.exec(rest);
    if (match === null) throw new Error('XML may contain only elements and text');
    rest = rest.slice(match[0].length);
    const [, closing, first = '', second, , empty] = match;
    const name = second ?? first;
    const tag = second === undefined ? first : `${first}:${second}`;
    if (closing !== '') {
      if (parent?.tag !== tag) throw new Error(`XML closes <${tag}>, which is not open`);
      open.pop();
    } else if (empty === '') {
      if (open.length === MAX_DEPTH) throw new Error('XML is nested too deeply');
      open.push({ name, tag, text: '', children: [] });
      continue;
    }
    const done = closing === '' ? { name, text: '', children: [] } : (parent as XmlElement);
    const above = open.at(-1);
    if (above !== undefined) above.children.push(done);
    else if (rest.trim() !== '') throw new Error('XML goes on after its root');
    else return done;
  }
}

/** Text of the first child of that name; empty when there is none. */
export function textOf(element: XmlElement, name: string): string {
  return element.children.find((child) => child.name === name)?.text ?? '';
}

/** Text for an element's content. */
export function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);
}

function decode(text: string): string {
  return text.replace(/&([^;]{0,10})(;?)/g, (whole, name: string, end: string) => {
    const code = /^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name);
    const point = code?.[1] === undefined ? Number(code?.[2]) : Number.parseInt(code[1], 16);
    const found = code === null ? NAMED[name] : point <= 0x10ffff ? String.fromCodePoint(point) : undefined;
    if (end === '' || found === undefined) throw new Error(`XML has the unknown entity ${whole}`);
    return found;
  });
}
