/** Conditions of policies: operators, and the keys that they compare. */
import { BlockList, isIP } from 'node:net';
import {
  type Asking,
  type Effort,
  matches,
  type PatternOptions,
  readPattern,
  type Variables,
} from './pattern.ts';

/** The facts of a request, by the names of condition keys in lower case (`s3:prefix`); absent: no value. */
export type ConditionValues = (name: string) => readonly string[] | undefined;

export interface Condition {
  /** In lower case, except the name of a tag. */
  readonly key: string;
  readonly isNegated: boolean;
  /** Also true for requests without the key. */
  readonly ifExists: boolean;
  readonly quantifier: 'all' | 'any' | undefined;
  /** Whether one of the request's values matches one of the policy's. */
  readonly accepts: (value: string, asking: Asking) => boolean;
  /** `Null`: whether the key must be absent. */
  readonly isNull?: boolean;
  /** Values without wildcards, which can make a policy non-public. */
  readonly fixed: readonly string[];
}

/** A part of a document that is not understood, for MalformedPolicy. */
export class PolicyProblem extends Error {}

/** Keys that requests can have. Denials with any other key would never apply. */
const KEYS = new Set(
  [
    'aws:CurrentTime',
    'aws:EpochTime',
    'aws:PrincipalAccount',
    'aws:PrincipalArn',
    'aws:PrincipalType',
    'aws:Referer',
    'aws:SecureTransport',
    'aws:SourceIp',
    'aws:UserAgent',
    'aws:userid',
    'aws:username',
    's3:LocationConstraint',
    's3:RequestObjectTagKeys',
    's3:ResourceAccount',
    's3:VersionId',
    's3:authType',
    's3:delimiter',
    's3:if-match',
    's3:if-none-match',
    's3:max-keys',
    's3:object-lock-legal-hold',
    's3:object-lock-mode',
    's3:object-lock-retain-until-date',
    's3:prefix',
    's3:signatureAge',
    's3:signatureversion',
    's3:x-amz-acl',
    's3:x-amz-content-sha256',
    's3:x-amz-copy-source',
    's3:x-amz-grant-full-control',
    's3:x-amz-grant-read',
    's3:x-amz-grant-read-acp',
    's3:x-amz-grant-write',
    's3:x-amz-grant-write-acp',
    's3:x-amz-metadata-directive',
    's3:x-amz-object-ownership',
    's3:x-amz-server-side-encryption',
    's3:x-amz-server-side-encryption-aws-kms-key-id',
    's3:x-amz-server-side-encryption-customer-algorithm',
    's3:x-amz-storage-class',
    's3:x-amz-website-redirect-location',
  ].map((key) => key.toLowerCase()),
);
/** Keys of AWS that no request here has, by their names in lower case, and what to use instead. */
const ABSENT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    's3:TlsVersion': 'use aws:SecureTransport',
    's3:object-lock-remaining-retention-days': 'use s3:object-lock-retain-until-date',
    'aws:SourceArn': 'services do not make requests for accounts; name accounts as Principal',
    'aws:SourceAccount': 'services do not make requests for accounts; name accounts as Principal',
    'aws:SourceVpc': 'use aws:SourceIp',
    'aws:SourceVpce': 'use aws:SourceIp',
    'aws:PrincipalOrgID': 'name accounts as Principal',
    'aws:ResourceAccount': 'use s3:ResourceAccount',
    'aws:MultiFactorAuthPresent': 'access keys have no second factor',
  }).map(([key, instead]) => [key.toLowerCase(), instead]),
);
const TAG = /^(s3:(?:existing|request)objecttag\/)(.+)$/i;

/** Throws PolicyProblem. */
function keyOf(name: string): string {
  const [, start, tag] = TAG.exec(name) ?? [];
  if (start !== undefined && tag !== undefined) return start.toLowerCase() + tag;
  if (KEYS.has(name.toLowerCase())) return name.toLowerCase();
  const instead = ABSENT.get(name.toLowerCase());
  const why = instead === undefined ? '' : `, which is not evaluated: ${instead}`;
  throw new PolicyProblem(`Policy has an invalid condition key - ${name}${why}`);
}

type Accepts = Condition['accepts'];
/** Creates the comparison for one value of a policy. Throws PolicyProblem. */
type Comparison = (value: string, hasVariables: boolean) => Accepts;

const byPattern =
  (options: PatternOptions): Comparison =>
  (value, hasVariables) => {
    const pattern = readPattern(value, { ...options, hasVariables });
    return (given, asking) => matches(pattern, given, asking);
  };

const equals = byPattern({ hasWildcards: false });
const equalsIgnoringCase = byPattern({ hasWildcards: false, foldsCase: true });
const like = byPattern({});

type Order = (given: number, wanted: number) => boolean;

function byNumber(read: (text: string) => number, order: Order): Comparison {
  return (value) => {
    const wanted = read(value);
    if (Number.isNaN(wanted)) throw new PolicyProblem(`Policy has an invalid condition value - ${value}`);
    return (given) => order(read(given), wanted);
  };
}

const numberOf = (text: string) => (/^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN);

/** Reads `2026-01-31T09:30:00Z`, and seconds since 1970. */
function timeOf(text: string): number {
  if (/^\d{1,13}$/.test(text)) return Number(text) * 1000;
  return /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
}

const ORDERS: Readonly<Record<string, Order>> = {
  Equals: (given, wanted) => given === wanted,
  LessThan: (given, wanted) => given < wanted,
  LessThanEquals: (given, wanted) => given <= wanted,
  GreaterThan: (given, wanted) => given > wanted,
  GreaterThanEquals: (given, wanted) => given >= wanted,
};

const truth: Comparison = (value) => {
  if (!/^(?:true|false)$/i.test(value)) throw new PolicyProblem(`Policy has an invalid boolean - ${value}`);
  return (given) => given.toLowerCase() === value.toLowerCase();
};

const address: Comparison = (value) => {
  const [ip = '', prefix] = value.split('/');
  const family = isIP(ip) === 6 ? 'ipv6' : 'ipv4';
  const bits = family === 'ipv6' ? 128 : 32;
  const length = prefix === undefined ? bits : Number(prefix);
  if (isIP(ip) === 0 || !/^\d{1,3}$/.test(prefix ?? '0') || length > bits) {
    throw new PolicyProblem(`Policy has an invalid IP address - ${value}`);
  }
  const list = new BlockList();
  list.addSubnet(ip, length, family);
  return (given) => isIP(given) !== 0 && list.check(given, isIP(given) === 6 ? 'ipv6' : 'ipv4');
};

/** Operators that have a negation: its name, and the comparison. */
const OPERATORS: Readonly<Record<string, readonly [negation: string | undefined, Comparison]>> = {
  StringEquals: ['StringNotEquals', equals],
  StringEqualsIgnoreCase: ['StringNotEqualsIgnoreCase', equalsIgnoringCase],
  StringLike: ['StringNotLike', like],
  ArnEquals: ['ArnNotEquals', like],
  ArnLike: ['ArnNotLike', like],
  Bool: [undefined, truth],
  IpAddress: ['NotIpAddress', address],
  ...Object.fromEntries(
    Object.entries(ORDERS).flatMap(([name, order]) => {
      const not = (kind: string) => (name === 'Equals' ? `${kind}NotEquals` : undefined);
      return [
        [`Numeric${name}`, [not('Numeric'), byNumber(numberOf, order)]],
        [`Date${name}`, [not('Date'), byNumber(timeOf, order)]],
      ] as const;
    }),
  ),
};

function operatorOf(name: string): { readonly isNegated: boolean; readonly compare: Comparison } {
  for (const [positive, [negation, compare]] of Object.entries(OPERATORS)) {
    if (name === positive) return { isNegated: false, compare };
    if (name === negation) return { isNegated: true, compare };
  }
  throw new PolicyProblem(`Policy has an invalid condition operator - ${name}`);
}

/** One operator and key with its policy values. Throws PolicyProblem. */
// biome-ignore lint/complexity/useMaxParams: the parts of one line of a document
export function readCondition(
  operator: string,
  name: string,
  values: readonly string[],
  hasVariables: boolean,
): Condition {
  const key = keyOf(name);
  if (operator === 'Null') {
    const [value = ''] = values;
    if (values.length !== 1 || !/^(?:true|false)$/i.test(value)) {
      throw new PolicyProblem('The policy condition Null must be true or false');
    }
    const plain = { key, isNegated: false, ifExists: false, quantifier: undefined, fixed: [] };
    return { ...plain, isNull: /^true$/i.test(value), accepts: () => true };
  }
  const [, quantifier, base = '', suffix] =
    /^(?:(ForAllValues|ForAnyValue):)?(\w+?)(IfExists)?$/.exec(operator) ?? [];
  const { isNegated, compare } = operatorOf(base);
  const accepting = values.map((value) => compare(value, hasVariables));
  const hasWildcards = /Like$|^Arn/.test(base);
  const isText = /^(?:String|Arn)/.test(base);
  return {
    key,
    isNegated,
    ifExists: suffix !== undefined,
    quantifier: quantifier === undefined ? undefined : quantifier === 'ForAllValues' ? 'all' : 'any',
    accepts: (value, asking) =>
      accepting.some((accepts) => {
        if (!isText) asking.effort.spend(1 + value.length);
        return accepts(value, asking);
      }),
    fixed: isNegated
      ? []
      : values.filter((value) => !value.includes('${') && !(hasWildcards && /[*?]/.test(value))),
  };
}

/**
 * A missing key matches negated operators, as AWS specifies, and others only with IfExists. Throws
 * TooMuchEffort.
 */
export function isMet(condition: Condition, values: ConditionValues, effort: Effort): boolean {
  const { key, isNegated, ifExists, quantifier, accepts, isNull } = condition;
  const given = values(key);
  if (isNull !== undefined) return (given === undefined) === isNull;
  if (given === undefined) return ifExists || quantifier === 'all' || (isNegated && quantifier !== 'any');
  const asking = { variables: variablesOf(values), effort };
  const meets = (value: string) => accepts(value, asking) !== isNegated;
  if (quantifier === 'all') return given.every(meets);
  if (quantifier === 'any') return given.some(meets);
  return isNegated ? given.every(meets) : given.some(meets);
}

const onlyOf = (values: readonly string[] | undefined) => (values?.length === 1 ? values[0] : undefined);

export const variablesOf =
  (values: ConditionValues): Variables =>
  (name) =>
    onlyOf(values(name));
