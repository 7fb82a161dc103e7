/**
 * The S3 edge: on the data origin, beside signed links. The order of steps for a request: target →
 * signature, before any of its body is read → rate limit → operation → scope → handler → XML.
 * Storage rules do not belong here.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import {
  anonymousPayload,
  type Claim,
  claimOf,
  errorDocument,
  mayBeOld,
  oldClaim,
  type RequestHead,
  readHead,
  S3Error,
} from '../../libs/s3-wire/index.ts';
import type { AccountDirectory } from '../accounts/directory.ts';
import type { Authenticator } from '../accounts/sign-in/authenticator.ts';
import type { AuditTrail } from '../calls/audit.ts';
import { NOBODY, type Principal } from '../calls/principal.ts';
import type { BodyMemory, HeldBody } from '../http/bodies/body-memory.ts';
import { isAwsSigned } from '../http/edge.ts';
import { type Door, dataAudit, type Exchange, type TrustedProxies } from '../http/exchange.ts';
import type { Clock } from '../platform/clock.ts';
import { endOfTick } from '../platform/concurrency.ts';
import { isAppError } from '../platform/errors.ts';
import { ABSENT_OPERATIONS, otherServiceDocument, refuseAbsent, SUB_RESOURCES } from './absent-operations.ts';
import { authorize, openBucket } from './access/access.ts';
import { ACL_OPERATIONS } from './access/acl-operations.ts';
import { POLICY_OPERATIONS } from './access/policy-operations.ts';
import { BUCKET_OPERATIONS } from './buckets/bucket-operations.ts';
import { allowOrigin, preflight } from './buckets/cors-answers.ts';
import { LIST_OPERATIONS } from './buckets/list-operations.ts';
import { toS3Error } from './domain-errors.ts';
import { formClaim } from './forms/form-credentials.ts';
import { FORM_OPERATIONS, type FormUpload, formUpload, isForm } from './forms/form-operation.ts';
import { FormReader } from './forms/form-reader.ts';
import { DELETE_OPERATIONS } from './objects/delete-operations.ts';
import { LOCK_OPERATIONS } from './objects/lock-operations.ts';
import { FACT_OPERATIONS } from './objects/object-facts.ts';
import { OBJECT_OPERATIONS } from './objects/object-operations.ts';
import { PART_OPERATIONS } from './parts/part-operations.ts';
import { audited, changesBucket, noteRefusal } from './s3-audit.ts';
import { dropBody, type S3Answer, type S3Call, type S3Operation, type S3Storage, send } from './s3-call.ts';
import { SETTING_OPERATIONS } from './settings/setting-operations.ts';
import { BodyReader } from './sign/body-reader.ts';
import { bucketOfHost, headersThatCount, isForBucket, readTarget, type Target } from './target.ts';

export interface S3EdgeDeps {
  readonly door: Door;
  readonly clock: Clock;
  readonly storage: S3Storage;
  /** s3KeyOf rejects with `invalid_api_key` for an unknown or ended key, `account_suspended`. */
  readonly keys: Pick<Authenticator, 's3KeyOf'>;
  readonly accounts: AccountDirectory;
  readonly proxies: TrustedProxies;
  readonly bodies: BodyMemory;
  /** Host names under which a bucket's name is the first label. */
  readonly domains: readonly string[];
  /** Whether the client's connection is private, so that it may send keys. */
  readonly isPrivate: (request: IncomingMessage) => boolean;
  /** Whether Signature Version 2 is accepted. */
  readonly oldSignatures: boolean;
  /** Default: nothing is stored. */
  readonly audit?: AuditTrail;
}

/** Headers with the id of a request. */
export const ID_HEADERS = ['x-amz-request-id', 'x-amz-id-2'];

/** Parameters that have an effect. */
export const OFFERED: readonly S3Operation[] = [
  ...PART_OPERATIONS,
  ...OBJECT_OPERATIONS,
  ...DELETE_OPERATIONS,
  ...FACT_OPERATIONS,
  ...ACL_OPERATIONS,
  ...LOCK_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...LIST_OPERATIONS,
  ...BUCKET_OPERATIONS,
  ...FORM_OPERATIONS,
  ...SETTING_OPERATIONS,
];

/** Every operation, more specific ones first. */
export const OPERATIONS = [...OFFERED, ...ABSENT_OPERATIONS].sort((a, b) => weightOf(b) - weightOf(a));

/** The operations by method and level. */
const BY_KIND = Map.groupBy(OPERATIONS, ({ method, level }) => `${method} ${level}`);

/** Every query parameter that selects an operation. */
const SELECTORS: ReadonlySet<string> = new Set(OPERATIONS.flatMap(({ query = [] }) => query));

function weightOf({ query = [], header }: S3Operation): number {
  return query.length * 2 + Number(header !== undefined);
}

/** Length of the random secret for checking unknown keys. */
const NO_SECRET = 'x'.repeat(40);

/** A request, and its response. */
interface Visit {
  readonly exchange: Exchange;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

type Entering = Pick<S3Call, 'what'> & {
  readonly caller: Principal;
  readonly operation: S3Operation;
  readonly claim: Claim | null;
};

export class S3Edge {
  readonly #deps: S3EdgeDeps;

  constructor(deps: S3EdgeDeps) {
    this.#deps = deps;
  }

  /** Whether a request is one of S3: signed, or for a bucket and without credentials of other kinds. */
  takes(request: IncomingMessage): boolean {
    const { url = '', headers } = request;
    if (isAwsSigned(request)) return true;
    if (headers['x-amz-date'] !== undefined || headers['x-amz-content-sha256'] !== undefined) return true;
    if (/[?&](?:X-Amz-(?:Algorithm|Signature|Credential)|AWSAccessKeyId)=/.test(url)) return true;
    if (isForm(request) && !/^\/(?:cdn|db)\/./.test(url)) return true;
    if (this.#isOfAnotherService(request)) return true;
    const hasOther =
      /^(?:Bearer|Basic) /i.test(headers.authorization ?? '') || headers['x-api-key'] !== undefined;
    return !hasOther && isForBucket(request, this.#deps.domains);
  }

  /** Calls by the query protocol: a form without a bucket. */
  #isOfAnotherService(request: IncomingMessage): boolean {
    const { method, url = '', headers } = request;
    if (method !== 'POST' || !/^\/(?:\?|$)/.test(url) || isForm(request)) return false;
    return bucketOfHost(headers.host ?? '', this.#deps.domains) === null;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const visit = { exchange: this.#deps.door.open(request, response, 's3'), request, response };
    void this.#serve(visit).catch((error) => this.#refuse(visit, error));
  }

  async #serve(visit: Visit): Promise<void> {
    const { exchange, request, response } = visit;
    this.#deps.door.admit(exchange);
    const { method = '', url = '', rawHeaders } = request;
    const host = request.headers.host ?? '';
    if (this.#isOfAnotherService(request)) {
      throw new S3Error('NotImplemented', 'This endpoint is S3: IAM, STS and SNS are not offered here');
    }
    const target = readTarget(url, host, this.#deps.domains);
    const head = readHead({ method, rawUrl: url, rawHeaders });
    const claim = this.#claimOf(head, host);
    if (method === 'OPTIONS') return await this.#preflight(visit, target, claim);
    if (claim === null && isForm(request)) return await this.#serveForm(visit, target);
    const { caller, verified } = await this.#verify(visit, target, claim);
    if (claim === null) assertNotOverridden(target);
    const headers = headersThatCount(request, target.rawQuery, claim?.isPresigned === true);
    const operation = this.#operationOf(visit, target, headers);
    const payload = claim?.payload ?? anonymousPayload(head);
    const hold = () => this.#hold(response, caller);
    const body = new BodyReader({ request, response, payload, verified, hold });
    const call = await this.#enter(visit, { operation, claim, caller, what: { target, headers, body } });
    if (operation.name === 'HeadBucket') tellRegion(call);
    await authorize(call, operation);
    await endOfTick();
    const run = changesBucket(operation) ? audited(this.#deps.audit, exchange, operation) : operation.run;
    const answer = await run(call);
    if (answer === undefined) return;
    if (!body.isTaken) request.resume();
    this.#send(visit, answer);
  }

  /** The memory of a body that is read as a whole. */
  #hold(response: ServerResponse, { accountId }: Principal): HeldBody {
    const held = this.#deps.bodies.hold(accountId);
    response.once('close', held.release);
    if (response.destroyed) held.release();
    return held;
  }

  #claimOf(head: RequestHead, host: string): Claim | null {
    const { domains, oldSignatures } = this.#deps;
    if (!mayBeOld(head)) return claimOf(head);
    const hostBucket = bucketOfHost(host, domains);
    return oldClaim(head, { hostBucket, inHeaders: oldSignatures }) ?? claimOf(head);
  }

  /** An upload by form: its signature is among the fields. */
  async #serveForm(visit: Visit, target: Target): Promise<void> {
    const { request, response } = visit;
    const reader = new FormReader();
    try {
      const head = await reader.open(request, response);
      const claim = formClaim(head.fields);
      const { caller } = await this.#verify(visit, target, claim);
      const operation = this.#operationOf(visit, target, request.headers);
      const form = formUpload(head, target.bucket ?? '', this.#deps.clock.now());
      const { key, headers, sizes } = form;
      const body = reader.fileOf(headers, sizes);
      const what = { target: { ...target, key }, headers, body, form };
      const call = await this.#enter(visit, { operation, claim, caller, what });
      await authorize(call, operation);
      const answer = await operation.run(call);
      if (answer !== undefined) this.#send(visit, answer);
    } catch (error) {
      reader.abandon(error);
      throw error;
    }
  }

  /** The call, with the caller's rights in the bucket; on storage the bucket's owner acts. */
  async #enter({ exchange, request, response }: Visit, asked: Entering): Promise<S3Call> {
    const { address, responseHeaders: common } = exchange;
    const { storage, clock, accounts, proxies, audit } = this.#deps;
    const { operation, claim, caller, what } = asked;
    const { target, headers, form } = what;
    const { bucket, query } = target;
    const facts = {
      caller,
      signature: claim && signatureFacts(claim, request, form),
      headers: form === undefined ? headers : { ...request.headers, ...headers },
      query,
      address,
      isSecure: proxies.isSecure(request),
      now: clock.now(),
    };
    const expected = facts.headers['x-amz-expected-bucket-owner'];
    const isThere = bucket !== null && operation.makes !== true;
    const access = isThere ? await openBucket({ storage, facts }, bucket, expected) : null;
    const origin = `${facts.isSecure ? 'https' : 'http'}://${request.headers.host ?? ''}`;
    const now = () => clock.now();
    const isPrivate = () => this.#deps.isPrivate(request);
    return {
      who: { caller, access, facts },
      what,
      tools: { storage, accounts, response, common, now, isPrivate, origin },
      principal: access?.actor ?? caller,
      record: () => [],
      data: audit && dataAudit(audit, exchange, () => exchange.routeName),
    };
  }

  /** Throws the errors of operationOf. */
  #operationOf(visit: Visit, target: Target, headers: IncomingHttpHeaders): S3Operation {
    const { method } = visit.request;
    const operation = operationOf({ method, headers }, target);
    visit.exchange.routeName = `s3${operation.name}`;
    return operation;
  }

  /** Without authentication; a presigned URL identifies the bucket's account. */
  async #preflight(visit: Visit, target: Target, claim: Claim | null): Promise<void> {
    const { door, keys } = this.#deps;
    const { request, exchange } = visit;
    door.limit(exchange);
    const key = claim === null ? null : await keys.s3KeyOf(claim.accessKeyId).catch(() => null);
    const bucket = await this.#bucketOf(target, key?.principal ?? null);
    this.#send(visit, preflight(request, target, bucket));
  }

  /**
   * Lets scripts of the request's origin read the response, also refusals, if the bucket's rules
   * allow it.
   */
  async #allowOrigin({ exchange, request, response }: Visit, target: Target): Promise<void> {
    if (request.headers.origin === undefined) return;
    allowOrigin(request, response, await this.#bucketOf(target, exchange.principal));
  }

  async #bucketOf({ bucket }: Target, principal: Principal | null) {
    if (bucket === null) return undefined;
    return this.#deps.storage.buckets.named(principal?.accountId ?? 0, bucket);
  }

  /** Finds the sender of a request, NOBODY if unsigned, and allows scripts to read a refusal. */
  async #verify(visit: Visit, target: Target, claim: Claim | null) {
    const { door } = this.#deps;
    const { exchange, response } = visit;
    try {
      const { principal, verified } = await this.#senderOf(visit, claim).catch((error) => {
        // Guesses are limited by address.
        door.limit(exchange);
        throw error;
      });
      door.identify(exchange, response, principal);
      door.limit(exchange);
      return { caller: principal, verified };
    } finally {
      await this.#allowOrigin(visit, target);
    }
  }

  async #senderOf(visit: Visit, claim: Claim | null) {
    if (claim === null) return { principal: NOBODY, verified: null };
    const { principal, secret } = await this.#holderOf(visit, claim);
    const verify = () => claim.verify(secret, this.#deps.clock.now());
    if (principal !== null) return { principal, verified: verify() };
    assertMade(verify);
    throw new S3Error('InvalidAccessKeyId', undefined, { fields: { AWSAccessKeyId: claim.accessKeyId } });
  }

  /** The signature is verified for unknown keys too, so that both take the same time. */
  async #holderOf(visit: Visit, { accessKeyId }: Claim) {
    try {
      return await this.#deps.keys.s3KeyOf(accessKeyId);
    } catch (error) {
      if (isAppError(error, 'invalid_api_key')) return { principal: null, secret: NO_SECRET };
      throw error;
    } finally {
      visit.exchange.routeName = 's3Signed';
    }
  }

  /** Throws AppError `overloaded` while earlier responses have not been read. */
  #send({ exchange, request, response }: Visit, answer: S3Answer): void {
    const bytes = Buffer.byteLength(answer.xml ?? answer.json ?? '');
    this.#deps.door.countUnread(bytes, response, exchange);
    send({ request, response, common: exchange.responseHeaders }, answer);
  }

  #refuse({ exchange, request, response }: Visit, thrown: unknown): void {
    const { id, responseHeaders: common } = exchange;
    const error = toS3Error(thrown);
    if (error.status === 403) noteRefusal(this.#deps.audit, exchange, error);
    this.#deps.door.refuse(exchange, response, {
      error,
      send: () => {
        dropBody(request, response);
        const [resource = ''] = (request.url ?? '').split('?', 1);
        const xml = this.#isOfAnotherService(request)
          ? otherServiceDocument(error, id)
          : errorDocument(error, { resource, requestId: id, hostId: id });
        send({ request, response, common }, { status: error.status, headers: error.headers, xml });
      },
    });
  }
}

/** The operation of a request. Throws S3Error NotImplemented, MethodNotAllowed. */
function operationOf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  target: Target,
): S3Operation {
  const { bucket, key, query } = target;
  const level = bucket === null ? 'service' : key === null ? 'bucket' : 'object';
  const found = BY_KIND.get(`${method} ${level}`)?.find(
    (each) =>
      (each.query ?? []).every((name) => query.has(name)) &&
      (each.header === undefined || headers[each.header] !== undefined),
  );
  const others = [...query.keys()].filter((name) => found?.query?.includes(name) !== true);
  const other = others.find((name) => SUB_RESOURCES.has(name));
  if (other !== undefined) return refuseAbsent(other);
  // A parameter that names a setting of a bucket must never change the whole: DELETE ?encryption
  // deletes no bucket.
  const isPart = method !== 'GET' && method !== 'HEAD' && others.some((name) => SELECTORS.has(name));
  if (found === undefined || isPart) throw new S3Error('MethodNotAllowed');
  return found;
}

/** Checks a request with an unknown key against a random secret. Throws other errors of the request. */
function assertMade(verify: () => unknown): void {
  try {
    verify();
  } catch (error) {
    if (!(error instanceof S3Error && error.code === 'SignatureDoesNotMatch')) throw error;
  }
}

/** Sends the region of the bucket, also with a refusal, so that clients sign for it. */
function tellRegion({ who: { access }, tools: { response } }: S3Call): void {
  if (access !== null) response.setHeader('x-amz-bucket-region', access.bucket.region);
}

/** A request without a signature cannot choose how a file is shown. Throws S3Error InvalidRequest. */
function assertNotOverridden({ query }: Target): void {
  if (![...query.keys()].some((name) => name.startsWith('response-'))) return;
  throw new S3Error(
    'InvalidRequest',
    'Request specific response headers cannot be used for anonymous GET requests.',
  );
}

/** Facts about the signature, for policies. */
function signatureFacts({ timeMs }: Claim, { headers }: IncomingMessage, form: FormUpload | undefined) {
  const isNew = timeMs !== undefined || form?.fields.has('x-amz-algorithm') === true;
  const inHeader = headers.authorization !== undefined;
  return {
    authType: form === undefined ? (inHeader ? 'REST-HEADER' : 'REST-QUERY-STRING') : 'POST',
    version: isNew ? 'AWS4-HMAC-SHA256' : 'AWS',
    timeMs,
  } as const;
}
