/**
 * Policies of forms: what a signer allows browsers to upload. A form must meet every condition, and every
 * field must be mentioned by one, so that no field can be added to a form that was signed for less.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
 */

import { S3Error } from '../../../libs/s3-wire/index.ts';
import { MAX_BODY_BYTES } from '../sign/body-reader.ts';
import type { FileSizes } from './form-reader.ts';

interface Condition {
  readonly kind: 'eq' | 'starts-with';
  /** Lower-case, without `$`. */
  readonly name: string;
  readonly value: string;
  /** The policy's text, for the error. */
  readonly text: string;
}

export interface FormPolicy {
  /** ms since 1970. */
  readonly expiresAt: number;
  readonly conditions: readonly Condition[];
  readonly sizes: FileSizes;
}

export const ANY_SIZE: FileSizes = { minBytes: 0, maxBytes: MAX_BODY_BYTES };
/** Fields that sign, or are signed as a whole. */
const UNCOVERED = ['policy', 'signature', 'x-amz-signature', 'awsaccesskeyid'];

function invalid(why: string): S3Error {
  return new S3Error('InvalidPolicyDocument', `Invalid Policy: ${why}`);
}

function unmet(why: string): S3Error {
  return new S3Error('AccessDenied', `Invalid according to Policy: ${why}`);
}

/** Reads the field, which is base64. Throws S3Error InvalidPolicyDocument. */
export function readPolicy(base64: string): FormPolicy {
  const document = readJson(base64);
  const { expiration, conditions } = document;
  if (typeof expiration !== 'string') throw invalid("Policy missing 'expiration'.");
  if (!Array.isArray(conditions)) throw invalid("Policy missing 'conditions'.");
  const read = conditions.map(readCondition);
  const sizes = read.filter((each): each is FileSizes => 'minBytes' in each);
  return {
    expiresAt: readExpiration(expiration),
    conditions: read.filter((each): each is Condition => 'kind' in each),
    sizes: {
      minBytes: Math.max(ANY_SIZE.minBytes, ...sizes.map(({ minBytes }) => minBytes)),
      maxBytes: Math.min(ANY_SIZE.maxBytes, ...sizes.map(({ maxBytes }) => maxBytes)),
    },
  };
}

function readJson(base64: string): Record<string, unknown> {
  if (!/^[A-Za-z0-9+/\s]+=*\s*$/.test(base64)) throw invalid('Invalid base64.');
  const text = new TextDecoder().decode(Buffer.from(base64, 'base64'));
  try {
    // Amazon's policies may write a dollar sign as `\$`, which is not valid JSON.
    const plain = text.replace(/\\(.)/g, (found, character) => (character === '$' ? '$' : found));
    const document: unknown = JSON.parse(plain);
    if (typeof document === 'object' && document !== null && !Array.isArray(document)) {
      return document as Record<string, unknown>;
    }
  } catch {
    // Not valid JSON.
  }
  throw invalid('Invalid JSON.');
}

function readExpiration(text: string): number {
  const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
  const at = isoTime.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw invalid(`Invalid 'expiration' value: '${text}'`);
}

function readCondition(condition: unknown): Condition | FileSizes {
  if (Array.isArray(condition)) return readTriple(condition);
  if (typeof condition !== 'object' || condition === null) throw invalid('Invalid Condition.');
  const [pair, ...others] = Object.entries(condition);
  if (pair === undefined || others.length > 0) {
    throw invalid('Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.');
  }
  const [name, value] = pair;
  if (typeof value !== 'string') throw invalid('Invalid Simple-Condition: value must be a string.');
  return { kind: 'eq', name: name.toLowerCase(), value, text: JSON.stringify(['eq', `$${name}`, value]) };
}

function readTriple(condition: readonly unknown[]): Condition | FileSizes {
  const [operator, first, second] = condition;
  const kind = String(operator).toLowerCase();
  if (kind !== 'eq' && kind !== 'starts-with' && kind !== 'content-length-range') {
    throw invalid(`Invalid Condition: Unknown operation '${operator}'.`);
  }
  if (condition.length !== 3) throw invalid(`Invalid ${kind}: wrong number of arguments.`);
  if (kind === 'content-length-range') {
    const [minBytes, maxBytes] = [first, second].map(readLength) as [number, number];
    return { minBytes, maxBytes };
  }
  if (typeof first !== 'string' || typeof second !== 'string' || !first.startsWith('$')) {
    throw invalid(`Invalid ${kind}: the field must begin with '$', and the value must be a string.`);
  }
  return { kind, name: first.slice(1).toLowerCase(), value: second, text: JSON.stringify(condition) };
}

function readLength(value: unknown): number {
  const bytes = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(bytes) && (bytes as number) >= 0) return bytes as number;
  throw invalid('Invalid content-length-range: Expecting two lengths.');
}

/**
 * `fields`: those of the form, by name in lower case, with the bucket that it was sent to. Throws
 * S3Error AccessDenied.
 */
export function assertMeets(
  fields: ReadonlyMap<string, string>,
  { expiresAt, conditions }: FormPolicy,
  nowMs: number,
): void {
  if (nowMs >= expiresAt) throw unmet('Policy expired.');
  for (const condition of conditions) {
    // "starts-with" and an empty text allow any value, so also a missing one.
    const absent = condition.kind === 'starts-with' ? '' : undefined;
    const value = fields.get(condition.name) ?? absent;
    if (value === undefined || !isMet(condition, value))
      throw unmet(`Policy Condition failed: ${condition.text}`);
  }
  const covered = new Set([...UNCOVERED, ...conditions.map(({ name }) => name)]);
  const extra = [...fields.keys()].filter((name) => !covered.has(name) && !name.startsWith('x-ignore-'));
  if (extra.length > 0) throw unmet(`Extra input fields: ${extra.join(', ')}`);
}

function isMet({ kind, name, value: wanted }: Condition, value: string): boolean {
  if (kind === 'eq') return value === wanted;
  if (name !== 'content-type') return value.startsWith(wanted);
  return value.split(',').every((type) => type.trimStart().startsWith(wanted));
}
