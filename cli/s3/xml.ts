/** Reads the XML of S3's answers, in which no element has attributes that matter. */

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replace(/&(#x?)?(\w+);/gi, (all: string, ...[mark, name]: string[]) => {
    if (mark === undefined) return ENTITIES[name ?? ''] ?? all;
    return String.fromCodePoint(Number.parseInt(name ?? '', mark.length === 2 ? 16 : 10));
  });
}

/** The text of the first element of that name, or undefined. */
export function textIn(xml: string, name: string): string | undefined {
  const found = new RegExp(`<${name}(?: [^>]*)?>([^<]*)</${name}>`).exec(xml)?.[1];
  return found === undefined ? undefined : unescaped(found);
}

/** Content of each element of that name. */
export function elementsIn(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, inner = '']) => inner);
}

/** A name in a list that was asked for with `encoding-type=url`. */
export function nameIn(xml: string, name: string): string {
  return decodeURIComponent((textIn(xml, name) ?? '').replaceAll('+', ' '));
}

/** Text within an element. */
export function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML says these as numbers only
  return text.replace(/[&<>"\u0000-\u001f]/g, (found) => `&#x${found.charCodeAt(0).toString(16)};`);
}
