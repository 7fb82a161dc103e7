/** Credentials and URL of the cloud: from the environment, else from a profile. */
import { connect } from 'node:net';
import { type Cloud, createCloud } from '../../sdk/index.ts';
import { hostName, variable } from '../environment.ts';
import { ClientError, EXIT, UsageError } from '../failures.ts';
import { goThroughProxies, isLoopback, isProxied } from '../proxies.ts';
import { type Profile, Profiles, type S3Keys } from './profiles.ts';

/** Timeout that exceeds any transfer. */
const ONE_COMMAND_SECONDS = 24 * 3600;

/** Timeout for the response: a dropped connection sends none. */
const REACH_MS = 3000;

export class Session {
  /** Null: the environment defines the account. */
  readonly profileName: string | null;
  readonly url: string;
  readonly key: string;
  readonly cloud: Cloud;
  readonly #s3: S3Keys | null;
  #pair: Promise<S3Keys> | undefined;
  #madeKeyId: string | undefined;

  constructor({ name, url, key, s3 }: { name: string | null; url: string; key: string; s3: S3Keys | null }) {
    this.profileName = name;
    this.url = url;
    this.key = key;
    this.#s3 = s3;
    goThroughProxies(url);
    this.cloud = createCloud({ baseUrl: url, apiKey: key });
  }

  /**
   * From CLOUDLET_URL and CLOUDLET_API_KEY, which automation sets; else from the profile of
   * `--profile`, of CLOUDLET_PROFILE, or the current one. Throws ClientError if not signed in.
   */
  static open(wanted: string | undefined): Session {
    const key = variable('CLOUDLET_API_KEY');
    if (key !== undefined && wanted === undefined) {
      const url = variable('CLOUDLET_URL');
      // A key must never be sent to a cloud that it does not belong to.
      if (url === undefined) throw new UsageError('CLOUDLET_API_KEY is set, but CLOUDLET_URL is not');
      return new Session({ name: null, url: cloudUrl(url), key, s3: s3OfEnvironment(url) });
    }
    const profiles = Profiles.read();
    const name = wanted ?? variable('CLOUDLET_PROFILE') ?? profiles.current;
    if (name === null) {
      throw new ClientError('not signed in', EXIT.signIn, 'Run: cloudlet login URL');
    }
    return Session.of(name, profiles.get(name));
  }

  static of(name: string, { url, key, s3 }: Profile): Session {
    return new Session({ name, url, key, s3 });
  }

  /**
   * The key pair for files. With only an API key, it creates a pair for this one command. Throws
   * CloudError if that key may not create keys.
   */
  async s3Keys(): Promise<S3Keys> {
    this.#pair ??= this.#s3 === null ? this.#makePair() : Promise.resolve(this.#s3);
    return this.#pair;
  }

  async #makePair(): Promise<S3Keys> {
    const name = `CLI on ${hostName()}, one command`;
    const made = await this.cloud.createAccessKey({
      name,
      scopes: ['storage:*'],
      expires_in: ONE_COMMAND_SECONDS,
    });
    this.#madeKeyId = made.id;
    const endpoint = await reachable(made.s3_endpoint, this.url);
    return { endpoint, access_key_id: made.access_key_id, secret_access_key: made.secret_access_key };
  }

  /** Revokes the temporary key pair. If that fails, the pair expires. */
  async close(): Promise<void> {
    await this.#pair?.catch(() => {});
    if (this.#madeKeyId !== undefined) await this.cloud.deleteAccessKey(this.#madeKeyId).catch(() => {});
  }
}

function s3OfEnvironment(url: string): S3Keys | null {
  const id = variable('CLOUDLET_ACCESS_KEY_ID');
  const secret = variable('CLOUDLET_SECRET_ACCESS_KEY');
  const endpoint = variable('CLOUDLET_S3_URL');
  if (id === undefined || secret === undefined || endpoint === undefined) return null;
  return { endpoint: namedAs(endpoint, url), access_key_id: id, secret_access_key: secret };
}

/** A cloud's URL as stored: only the origin. Throws UsageError for an invalid one. */
export function cloudUrl(text: string): string {
  const [, scheme = ''] = /^([a-z][a-z\d+.-]*):\/\//i.exec(text) ?? [];
  if (scheme !== '' && !/^https?$/i.test(scheme))
    throw new UsageError(`${scheme} is not supported; use http or https`);
  const whole = /^https?:\/\//i.test(text) ? text : `${isLoopback(text) ? 'http' : 'https'}://${text}`;
  let url: URL;
  try {
    url = new URL(whole);
  } catch {
    throw new UsageError(`${text} is not a valid cloud URL`);
  }
  if (url.username !== '' || url.password !== '') throw new UsageError('the URL must not contain a password');
  return url.origin;
}

/** True if traffic to the URL can be read on the way. */
export function isOpenToReaders(url: string): boolean {
  const { protocol, host } = new URL(url);
  return protocol === 'http:' && !isLoopback(host);
}

/**
 * The endpoint, with the host name by which the cloud was reached if the cloud reports only its
 * loopback address, which means that no public URL is set.
 */
function namedAs(endpoint: string, url: string): string {
  const [own, cloud] = [new URL(endpoint), new URL(url)];
  if (isLoopback(own.host) && !isLoopback(cloud.host)) own.hostname = cloud.hostname;
  return own.origin;
}

/** The endpoint; or the cloud's own URL, which also accepts signed requests, if only that is reachable. */
export async function reachable(endpoint: string, url: string): Promise<string> {
  // A proxy does not reveal ports that it may not reach.
  if (isProxied(url)) return url;
  const named = namedAs(endpoint, url);
  const { protocol, hostname, port } = new URL(named);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    timeout: REACH_MS,
  });
  return new Promise((resolve) => {
    const settle = (result: string) => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', () => settle(named));
    for (const event of ['error', 'timeout']) socket.once(event, () => settle(url));
  });
}
