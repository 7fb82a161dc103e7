/**
 * Bucket policies, in AWS' format. Unknown elements are refused when the policy is set: a misread statement
 * could grant what its author meant to deny.
 */
import type { BucketPolicy } from '../../storage/buckets/bucket-settings.ts';
import { type Condition, PolicyProblem, readCondition } from './conditions.ts';
import { isKnownAction, kindsOf } from './known-actions.ts';
import { type Asking, Effort, matches, type Pattern, readPattern, TooMuchEffort } from './pattern.ts';

/** Everyone, or accounts by their canonical ids. */
type Principals = 'everyone' | ReadonlySet<string>;

export interface Statement {
  readonly effect: 'Allow' | 'Deny';
  readonly principals: Principals;
  /** All principals except `principals`. */
  readonly isNotPrincipal: boolean;
  readonly actions: readonly Pattern[];
  readonly isNotAction: boolean;
  readonly resources: readonly Pattern[];
  readonly isNotResource: boolean;
  readonly conditions: readonly Condition[];
}

export interface Policy {
  readonly statements: readonly Statement[];
}

export const POLICY_MAX_BYTES = 20 * 1024;
const ARN = 'arn:aws:s3:::';
/** Each action is compared with each known one, in 20 KiB at most: about 20 ms, once when a policy is set. */
const APPLICABLE_STEPS = 5_000_000;
const VERSION_WITH_VARIABLES = '2012-10-17';
const MEMBERS = new Set(['Version', 'Id', 'Statement']);
const STATEMENT_MEMBERS = new Set([
  ...['Sid', 'Effect', 'Principal', 'NotPrincipal', 'Action', 'NotAction'],
  ...['Resource', 'NotResource', 'Condition'],
]);

type Json = Readonly<Record<string, unknown>>;

/** A policy whose statements name accounts as its author did. */
export interface PolicyDraft {
  readonly version: string | undefined;
  readonly statements: readonly Json[];
  /** All account names, without `*`. */
  readonly accounts: readonly string[];
}

/** Throws PolicyProblem if the text is not a policy. */
export function readPolicy(text: string): PolicyDraft {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new PolicyProblem("Policies must be valid JSON and the first byte must be '{'");
  }
  if (!isObject(document))
    throw new PolicyProblem("Policies must be valid JSON and the first byte must be '{'");
  assertMembers(document, MEMBERS);
  const { Version: version, Statement: given } = document;
  if (version !== undefined && version !== VERSION_WITH_VARIABLES && version !== '2008-10-17') {
    throw new PolicyProblem('The policy must contain a valid version string');
  }
  const statements = Array.isArray(given) ? given : [given];
  if (statements.length === 0 || !statements.every(isObject)) {
    throw new PolicyProblem('Could not parse the policy: Statement is empty!');
  }
  // MinIO's clients write an empty Sid into each statement.
  const ids = statements.map(({ Sid }) => Sid).filter((id) => id !== undefined && id !== '');
  if (!ids.every((id) => typeof id === 'string') || new Set(ids).size < ids.length) {
    throw new PolicyProblem('Statement IDs (SID) in a single policy must be unique');
  }
  const accounts = new Set(statements.flatMap((statement) => accountsIn(statement)));
  return { version, statements, accounts: [...accounts] };
}

/**
 * The policy of a bucket; `accounts`: canonical ids by the names in the draft. Throws
 * PolicyProblem, also for accounts that do not exist.
 */
export function compilePolicy(
  { version, statements }: PolicyDraft,
  bucket: string,
  accounts: Readonly<Record<string, string>>,
): Policy {
  const hasVariables = version === VERSION_WITH_VARIABLES;
  const place = {
    bucket,
    accounts,
    hasVariables,
    asking: { variables: () => undefined, effort: new Effort() },
  };
  return boundedly(() => ({ statements: statements.map((json) => compileStatement(json, place)) }));
}

/**
 * Throws PolicyProblem for an action that applies to none of its statement's resources. For
 * policies being set; existing ones are not checked.
 */
export function assertApplicable({ statements }: PolicyDraft): void {
  const asking = { variables: () => undefined, effort: new Effort(APPLICABLE_STEPS) };
  for (const { Action: actions, Resource: resources } of statements) {
    if (actions === undefined || resources === undefined) continue;
    const kindsHere = kindsIn(textsOf(resources, 'resource'));
    for (const text of textsOf(actions, 'action')) {
      const pattern = readPattern(text, { foldsCase: true });
      const kinds = boundedly(() => kindsOf((action) => matches(pattern, action, asking)));
      if (text === '*' || kinds.some((kind) => kindsHere[kind])) continue;
      throw new PolicyProblem(`Action does not apply to any resource(s) in statement - ${text}`);
    }
  }
}

/** The kinds of the named resources. A wildcard in the bucket's name continues past its end. */
function kindsIn(resources: readonly string[]): { readonly bucket: boolean; readonly object: boolean } {
  const names = resources.map((text) => text.slice(ARN.length));
  const isAll = resources.includes('*');
  return {
    bucket: isAll || names.some((name) => /^[^/]*(?:$|\*\/)/.test(name)),
    object: isAll || names.some((name) => /[/*]/.test(name)),
  };
}

function boundedly<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TooMuchEffort)) throw error;
    throw new PolicyProblem('Policy has too many wildcards in its actions');
  }
}

/** Recently compiled policies; a bucket's settings keep the document until it changes. */
const compiled = new WeakMap<BucketPolicy, Map<string, Policy>>();

/** The stored policy of a bucket. */
export function policyOf(stored: BucketPolicy, bucket: string): Policy {
  const known = compiled.get(stored) ?? new Map<string, Policy>();
  let policy = known.get(bucket);
  if (policy === undefined) {
    policy = compilePolicy(readPolicy(stored.text), bucket, stored.principals);
    compiled.set(stored, known.set(bucket, policy));
  }
  return policy;
}

interface Place {
  readonly bucket: string;
  readonly accounts: Readonly<Record<string, string>>;
  readonly hasVariables: boolean;
  readonly asking: Asking;
}

function compileStatement(json: Json, place: Place): Statement {
  assertMembers(json, STATEMENT_MEMBERS);
  const { accounts, hasVariables } = place;
  const { Effect: effect, Condition: conditions = {} } = json;
  if (effect !== 'Allow' && effect !== 'Deny') throw new PolicyProblem('Policy has an invalid effect');
  const [isNotPrincipal, named] = either(json, 'Principal', 'NotPrincipal');
  if (isNotPrincipal && effect === 'Allow') {
    throw new PolicyProblem('Allow with NotPrincipal is not supported: name who is allowed');
  }
  const [isNotAction, actions] = either(json, 'Action', 'NotAction');
  const [isNotResource, resources] = either(json, 'Resource', 'NotResource');
  return {
    effect,
    principals: compilePrincipals(named, accounts),
    isNotPrincipal,
    actions: textsOf(actions, 'action').map((text) => compileAction(text, place)),
    isNotAction,
    resources: textsOf(resources, 'resource').map((text) => compileResource(text, place)),
    isNotResource,
    conditions: compileConditions(conditions, hasVariables),
  };
}

/** The member that a statement has, of a pair such as Action and NotAction. */
function either(json: Json, plain: string, negated: string): [isNegated: boolean, value: unknown] {
  const [isPlain, isNegated] = [json[plain] !== undefined, json[negated] !== undefined];
  if (isPlain === isNegated) throw new PolicyProblem(`Missing required field ${plain} cannot be empty!`);
  return [isNegated, isPlain ? json[plain] : json[negated]];
}

function accountsIn(statement: Json): string[] {
  const [, named] = either(statement, 'Principal', 'NotPrincipal');
  return principalsIn(named).filter((name) => name !== '*');
}

/** `"*"`, or an object of AWS names or canonical ids. Other kinds match nobody, and are refused. */
function principalsIn(named: unknown): string[] {
  if (named === '*') return ['*'];
  if (!isObject(named) || Object.keys(named).length === 0) throw invalidPrincipal();
  return Object.entries(named).flatMap(([kind, value]) => {
    if (kind !== 'AWS' && kind !== 'CanonicalUser') throw invalidPrincipal();
    const names = textsOf(value, 'principal');
    if (names.length === 0 || (kind === 'CanonicalUser' && names.includes('*'))) throw invalidPrincipal();
    return names;
  });
}

function compilePrincipals(named: unknown, accounts: Readonly<Record<string, string>>): Principals {
  const names = principalsIn(named);
  if (names.includes('*')) return 'everyone';
  return new Set(
    names.map((name) => {
      const id = Object.hasOwn(accounts, name) ? accounts[name] : undefined;
      if (id === undefined) throw invalidPrincipal();
      return id;
    }),
  );
}

function compileAction(text: string, { asking }: Place): Pattern {
  const pattern = readPattern(text, { foldsCase: true });
  if (text === '*' || isKnownAction((action) => matches(pattern, action, asking))) return pattern;
  throw new PolicyProblem(`Policy has invalid action - ${text}`);
}

/** Only the bucket and its objects: a bucket's policy cannot cover other buckets. */
function compileResource(text: string, { bucket, hasVariables, asking }: Place): Pattern {
  const [, name] = /^arn:aws:s3:::([^/]+)(?:\/.*)?$/s.exec(text) ?? [];
  const pattern = readPattern(text, { hasVariables });
  const isOurs = name !== undefined && matches(readPattern(name), bucket, asking);
  if (isOurs || text === '*') return pattern;
  throw new PolicyProblem(`Policy has invalid resource - ${text}`);
}

function compileConditions(conditions: unknown, hasVariables: boolean): Condition[] {
  if (!isObject(conditions)) throw new PolicyProblem('Policy has an invalid condition');
  return Object.entries(conditions).flatMap(([operator, keys]) => {
    if (!isObject(keys) || Object.keys(keys).length === 0) {
      throw new PolicyProblem(`Policy has an invalid condition - ${operator}`);
    }
    return Object.entries(keys).map(([key, value]) => {
      const values = (Array.isArray(value) ? value : [value]).map(conditionText);
      if (values.length === 0) throw new PolicyProblem('Policy has an invalid condition value');
      return readCondition(operator, key, values, hasVariables);
    });
  });
}

function conditionText(value: unknown): string {
  if (['string', 'number', 'boolean'].includes(typeof value)) return String(value);
  throw new PolicyProblem('Policy has an invalid condition value');
}

/** A string or an array of strings. */
function textsOf(value: unknown, what: string): string[] {
  const texts = Array.isArray(value) ? value : [value];
  if (texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '')) return texts;
  throw new PolicyProblem(`Policy has invalid ${what}`);
}

function assertMembers(json: Json, known: ReadonlySet<string>): void {
  const other = Object.keys(json).find((name) => !known.has(name));
  if (other !== undefined) throw new PolicyProblem(`Unknown field ${other}`);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const invalidPrincipal = () => new PolicyProblem('Invalid principal in policy');

/** The ARN of a bucket or of an object in it. */
export function arnOf(bucket: string, key: string | undefined): string {
  return key === undefined ? `${ARN}${bucket}` : `${ARN}${bucket}/${key}`;
}

/** Condition keys that make a grant to `everyone` non-public. */
const NARROW = new Set([
  'aws:sourceip',
  'aws:principalaccount',
  'aws:principalarn',
  'aws:userid',
  'aws:username',
]);

/** Whether a statement of the policy allows everyone something, as AWS judges it. */
export function isPublic({ statements }: Policy): boolean {
  return statements.some(
    ({ effect, principals, conditions }) =>
      effect === 'Allow' && principals === 'everyone' && !conditions.some(narrows),
  );
}

function narrows({ key, isNegated, ifExists, quantifier, fixed, isNull }: Condition): boolean {
  if (!NARROW.has(key) || isNegated || ifExists || quantifier === 'all' || isNull !== undefined) return false;
  return fixed.length > 0 && (key !== 'aws:sourceip' || !fixed.some((network) => /\/[0-7]$/.test(network)));
}
