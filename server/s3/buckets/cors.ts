/** Cross-origin rules of a bucket: read and written as XML, and matched against requests of browsers. */

import {
  children,
  parseXml,
  S3Error,
  textOf,
  type XmlElement,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import type { CorsRule } from '../../storage/buckets/bucket-settings.ts';

export const CORS_MAX_BYTES = 64 * 1024;
const MAX_RULES = 100;
const METHODS = ['GET', 'PUT', 'HEAD', 'POST', 'DELETE'];
const ID_MAX_LENGTH = 255;

/** Throws S3Error MalformedXML, InvalidRequest. */
export function readCors(body: Buffer): CorsRule[] {
  const root = parseXml(body, CORS_MAX_BYTES);
  const rules = children(root, 'CORSRule');
  if (root.name !== 'CORSConfiguration' || rules.length === 0) throw new S3Error('MalformedXML');
  if (rules.length > MAX_RULES) {
    throw invalid(`The number of CORS rules should not exceed allowed limit of ${MAX_RULES} rules.`);
  }
  return rules.map(readRule);
}

function readRule(rule: XmlElement): CorsRule {
  const texts = (name: string) => children(rule, name).map(({ text }) => text);
  const [origins, methods] = [texts('AllowedOrigin'), texts('AllowedMethod')];
  const [headers, exposed] = [texts('AllowedHeader'), texts('ExposeHeader')];
  const [id, age] = [textOf(rule, 'ID'), textOf(rule, 'MaxAgeSeconds')];
  if (origins.length === 0 || methods.length === 0) throw new S3Error('MalformedXML');
  if (age !== undefined && !/^\d{1,9}$/.test(age)) throw new S3Error('MalformedXML');
  if (id !== undefined && id.length > ID_MAX_LENGTH) {
    throw new S3Error('InvalidArgument', `ID length should not exceed allowed limit of ${ID_MAX_LENGTH}`);
  }
  const other = methods.find((method) => !METHODS.includes(method));
  if (other !== undefined) {
    throw invalid(`Found unsupported HTTP method in CORS config. Unsupported method is ${other}`);
  }
  for (const [kind, patterns] of [
    ['AllowedOrigin', origins],
    ['AllowedHeader', headers],
  ] as const) {
    const wild = patterns.find((pattern) => pattern.split('*').length > 2);
    if (wild !== undefined) throw invalid(`${kind} "${wild}" can not have more than one wildcard.`);
  }
  const wild = exposed.find((name) => name.includes('*'));
  if (wild !== undefined) {
    throw invalid(
      `ExposeHeader "${wild}" contains wildcard. We currently do not support wildcard for ExposeHeader.`,
    );
  }
  // These values become response headers.
  if ([...origins, ...exposed].some((text) => !/^[\x21-\x7e]+$/.test(text)))
    throw new S3Error('MalformedXML');
  return {
    ...(id !== undefined && { id }),
    origins,
    methods,
    headers,
    exposed,
    ...(age !== undefined && { maxAgeSeconds: Number(age) }),
  };
}

function invalid(message: string): S3Error {
  return new S3Error('InvalidRequest', message);
}

export function corsDocument(rules: readonly CorsRule[]): string {
  const all = (name: string, texts: readonly string[]) => texts.map((text) => [name, text] as const);
  return xmlDocument(
    'CORSConfiguration',
    rules.map(
      ({ id, origins, methods, headers, exposed, maxAgeSeconds }) =>
        [
          'CORSRule',
          [
            ['ID', id],
            ...all('AllowedHeader', headers),
            ...all('AllowedMethod', methods),
            ...all('AllowedOrigin', origins),
            ...all('ExposeHeader', exposed),
            ['MaxAgeSeconds', maxAgeSeconds],
          ],
        ] as const,
    ),
  );
}

/** A request that a script of another origin wants to send. */
export interface CorsAsked {
  readonly origin: string;
  readonly method: string;
  /** In lower case; of a preflight. */
  readonly headers: readonly string[];
}

/** Each is matched against all patterns of a rule; real pages send a few. */
const MAX_HEADERS = 100;

/** The names in `Access-Control-Request-Headers`, each once. Throws S3Error BadRequest for too many. */
export function headerNames(text: string): string[] {
  const names = new Set(text.split(',').map((name) => name.trim().toLowerCase()));
  names.delete('');
  if (names.size <= MAX_HEADERS) return [...names];
  throw new S3Error('BadRequest', `Access-Control-Request-Headers names more than ${MAX_HEADERS} headers`);
}

/** Whether a pattern, with `*` as a wildcard, matches a text. */
type Matcher = (text: string) => boolean;

function matcherOf(patterns: readonly string[]): Matcher {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')));
  const wild = patterns
    .filter((pattern) => pattern.includes('*'))
    .map((pattern) => pattern.split('*') as [start: string, end: string]);
  return (text) =>
    exact.has(text) ||
    wild.some(
      ([start, end]) =>
        text.length >= start.length + end.length && text.startsWith(start) && text.endsWith(end),
    );
}

/** A bucket's settings keep a rule until it changes. */
const matchers = new WeakMap<CorsRule, { readonly origin: Matcher; readonly header: Matcher }>();

function matchersOf(rule: CorsRule) {
  const known = matchers.get(rule);
  if (known !== undefined) return known;
  const lower = rule.headers.map((pattern) => pattern.toLowerCase());
  const made = { origin: matcherOf(rule.origins), header: matcherOf(lower) };
  matchers.set(rule, made);
  return made;
}

/**
 * The headers that allow the request, by the first matching rule; null: none matches. `Vary` is not
 * included, because refusals have it too.
 */
export function corsHeaders(rules: readonly CorsRule[], asked: CorsAsked): Record<string, string> | null {
  const { origin, method, headers } = asked;
  const rule = rules.find(
    (each) =>
      each.methods.includes(method) &&
      matchersOf(each).origin(origin) &&
      headers.every((name) => matchersOf(each).header(name)),
  );
  if (rule === undefined) return null;
  const isOpen = rule.origins.find((pattern) => matcherOf([pattern])(origin)) === '*';
  const names: Record<string, string> = {
    'access-control-allow-origin': isOpen ? '*' : origin,
    'access-control-allow-methods': rule.methods.join(', '),
  };
  if (!isOpen) names['access-control-allow-credentials'] = 'true';
  if (headers.length > 0) names['access-control-allow-headers'] = headers.join(', ');
  if (rule.exposed.length > 0) names['access-control-expose-headers'] = rule.exposed.join(', ');
  if (rule.maxAgeSeconds !== undefined) names['access-control-max-age'] = String(rule.maxAgeSeconds);
  return names;
}
