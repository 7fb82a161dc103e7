/**
 * Tests an access key as an S3 client would use it: with signed requests to the endpoint, so that
 * effects of anything in between, such as a proxy that changes headers, show. Nothing is stored or
 * changed.
 */
import { parseXml, pathOf, queryText, signedHeaders, textOf } from '../../../libs/s3-wire/index.ts';
import type { S3Key } from '../../accounts/sign-in/authenticator.ts';
import { permits } from '../../calls/principal.ts';
import type { Clock } from '../../platform/clock.ts';
import type { KeyTrialResult, KeyTrialStep } from './key-trial-schema.ts';

export interface KeyTrial {
  /** URL for S3 clients. */
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly key: S3Key;
  /** The bucket to read and write in; default: the first that the key is limited to. */
  readonly bucket: string | undefined;
  readonly clock: Clock;
}

interface Answer {
  readonly status: number;
  /** The code of a refusal. */
  readonly code: string | null;
  readonly message: string;
  readonly isS3: boolean;
}

interface Request {
  readonly method: 'GET' | 'PUT';
  /** Encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

type Send = (request: Request) => Promise<Answer>;

const TIMEOUT_MS = 5000;
const REGION = 'us-east-1';
const ANSWER_MAX_BYTES = 64 * 1024;
const TRIED_NAME = 'cloudlet-key-test';
/** No object has this ETag, so a conditional write with it does nothing. */
const NO_ETAG = '"00000000000000000000000000000000"';
/** Error codes of an unmet condition. */
const UNMET = ['PreconditionFailed', 'NoSuchKey'];

/** Runs the steps in order, until a required one fails. */
export async function tryKey(trial: KeyTrial): Promise<KeyTrialResult> {
  const { endpoint } = trial;
  const steps: KeyTrialStep[] = [];
  for await (const step of stepsOf(trial)) steps.push(step);
  return { endpoint, ok: steps.every(({ ok }) => ok), steps };
}

async function* stepsOf(trial: KeyTrial): AsyncGenerator<KeyTrialStep> {
  const send = senderOf(trial);
  let first: Answer;
  try {
    first = await send({ method: 'GET', path: '/' });
  } catch (error) {
    yield { step: 'endpoint', ok: false, ...faultOf(error) };
    return;
  }
  const answers = first.isS3
    ? said('The endpoint answers')
    : said('The endpoint answers, but is not the S3 service of this cloud', first.code);
  yield { step: 'endpoint', ok: first.isS3, ...answers };
  if (!first.isS3) return;
  // Rights are checked only once the signature was found valid.
  const isSigned = first.code === null || first.code === 'AccessDenied';
  const signed = isSigned ? said('The key and its signature were accepted') : refusal(first);
  yield { step: 'signature', ok: isSigned, ...signed };
  if (!isSigned) return;
  const mayRead = permits(trial.key.principal, 'storage:read');
  yield { step: 'list_buckets', ...judged(first, mayRead, first.code === null) };
  yield* stepsInBucket(trial, send);
}

/** Tests a list and a write in one bucket. */
async function* stepsInBucket({ key, bucket }: KeyTrial, send: Send): AsyncGenerator<KeyTrialStep> {
  const { bucketLimits } = key.principal;
  const limit = bucketLimits?.find((each) => bucket === undefined || each.bucket === bucket);
  const name = bucket ?? limit?.bucket;
  if (name === undefined) return;
  const prefix = limit?.prefix ?? '';
  const isCovered = bucketLimits === null || limit !== undefined;
  const query = { 'list-type': '2', 'max-keys': '1', prefix };
  const read = await send({ method: 'GET', path: pathOf(encodeURIComponent(name)), query }).catch(asAnswer);
  const mayRead = isCovered && permits(key.principal, 'storage:read');
  yield { step: 'read', ...judged(read, mayRead, read.code === null) };
  const path = pathOf(encodeURIComponent(name), prefix + TRIED_NAME);
  const headers = { 'if-match': NO_ETAG };
  const write = await send({ method: 'PUT', path, headers }).catch(asAnswer);
  const mayWrite = isCovered && permits(key.principal, 'storage:append');
  yield { step: 'write', ...judged(write, mayWrite, UNMET.includes(write.code ?? '')) };
}

const said = (message: string, code: string | null = null) => ({ code, message });
const refusal = ({ code, message }: Answer) => ({ code, message });

/** Compares a response with the permissions of the key. */
function judged(answer: Answer, isPromised: boolean, isDone: boolean): Omit<KeyTrialStep, 'step'> {
  if (isDone === isPromised)
    return { ok: true, ...said(isPromised ? 'Works' : 'Refused: the key is not allowed to do this') };
  if (isDone) return { ok: false, ...said('Works, although the key is not allowed to do this') };
  return { ok: false, ...refusal(answer) };
}

function senderOf({ endpoint, accessKeyId, key: { secret }, clock }: KeyTrial): Send {
  return async ({ method, path, query = {}, headers = {} }) => {
    // fetch sends `/b` for `/a/../b`: that is signed.
    const url = new URL(`${endpoint.replace(/\/$/, '')}${path}?${queryText(query)}`);
    const asked = { method, path: url.pathname, query, headers };
    const signer = { accessKeyId, secret, region: REGION, nowMs: clock.now() };
    const { host: _, ...signed } = signedHeaders(asked, url.host, signer);
    const sent = { ...signed, ...(method === 'PUT' && { 'content-length': '0' }) };
    const init = { method, headers: sent, redirect: 'manual' as const };
    const reply = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return answerOf(reply, Buffer.from(await reply.arrayBuffer()));
  };
}

function answerOf({ ok, status, statusText, headers }: Response, body: Buffer): Answer {
  const isS3 = headers.get('x-amz-request-id') !== null;
  if (ok) return { status, code: null, message: '', isS3 };
  const plain = { status, code: `HTTP ${status}`, message: statusText, isS3 };
  if (!isS3 || body.length > ANSWER_MAX_BYTES) return plain;
  try {
    const root = parseXml(body, ANSWER_MAX_BYTES);
    const [code, message] = [textOf(root, 'Code'), textOf(root, 'Message')];
    return { ...plain, ...(code !== undefined && { code }), ...(message !== undefined && { message }) };
  } catch {
    return plain;
  }
}

/** A connection that broke between two requests. */
const asAnswer = (error: unknown): Answer => ({ status: 0, isS3: false, ...faultOf(error) });

/** fetch hides the details in the cause. */
function faultOf(error: unknown): { code: string; message: string } {
  const { name = '', cause } = error as Error;
  if (name === 'TimeoutError') return { code: 'ETIMEDOUT', message: 'No answer within 5 seconds' };
  const { code = 'failed', message = String(error) } = (cause ?? {}) as { code?: string; message?: string };
  return { code, message: message === '' ? 'The connection failed' : message };
}
