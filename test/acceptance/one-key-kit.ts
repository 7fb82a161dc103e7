/** Shared by one-key-accounts.ts and one-key-resources.ts. */
import assert from 'node:assert/strict';
import { type Account, type Answer, type Call, Client } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import type { MailServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';

export const PASSWORD = 'correct horse battery';

/** One call of an operation. */
export interface Asked {
  readonly path: string;
  /** Default: POST. */
  readonly method?: string;
  readonly json?: unknown;
  readonly form?: () => FormData;
  /** The key of the caller; null: a public call. Default: the administrator's. */
  readonly key?: string | null;
  /** The key for repeated calls, if the first call replaced it. */
  readonly nextKey?: (answer: Answer) => string;
  readonly prefer?: 'respond-async';
  /** If the call is refused here, the same way at each node. */
  readonly refusedWith?: string;
  /** The number of effects; absent: there cannot be two. */
  readonly effects?: () => Promise<number>;
}

export interface KeptCase {
  /** A new resource for each call, with `n` in its name. */
  readonly ask: (kit: OneKeyKit, n: string) => Promise<Asked> | Asked;
  /** It is slow, or the cloud can have only one. */
  readonly once?: true;
  /** It only reads, so its answer is not stored. */
  readonly reads?: true;
  /** Why the answer in the commit of the effect is replaced by a later one. */
  readonly replaced?: string;
}

export type KeptCases = Readonly<Record<string, KeptCase>>;

/** Two clients with an administrator's key, at the given nodes, or at one cloud. */
export class OneKeyKit {
  readonly nodes: readonly [Client, Client];
  readonly mails: MailServer;
  database = '';
  #machine: Promise<string> | undefined;
  #point: Promise<string> | undefined;

  constructor(clouds: readonly CloudProcess[], mails: MailServer) {
    const [one, two = one] = clouds.map(({ api }) => new Client(api, ADMIN_KEY));
    assert.ok(one && two);
    this.nodes = [one, two];
    this.mails = mails;
  }

  async prepare(): Promise<void> {
    await this.made('/api/buckets', { name: 'all', versioning: true });
    this.database = await this.newDatabase('all');
    await this.query('CREATE TABLE notes (text TEXT)');
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async made(path: string, json: unknown = {}, key = ADMIN_KEY): Promise<any> {
    return good(await this.nodes[0].as(key).call(path, { method: 'POST', json }), path);
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async seen(path: string): Promise<any> {
    return good(await this.nodes[1].call(path), path);
  }

  async countOf(path: string, matches: (item: Record<string, unknown>) => boolean): Promise<number> {
    const body = await this.seen(path);
    return (Array.isArray(body) ? body : body.items).filter(matches).length;
  }

  async remove(path: string): Promise<void> {
    good(await this.nodes[0].call(path, { method: 'DELETE' }), path);
  }

  /** The path of a new database. */
  async newDatabase(name: string): Promise<string> {
    const { database_id } = await this.made('/api/databases', { name });
    return `/api/databases/${database_id}`;
  }

  async query(statement: string) {
    return (await this.made(`${this.database}/query`, { statement, read_only: false })).rows;
  }

  async countRows(text: string): Promise<number> {
    return Number((await this.query(`SELECT count(*) FROM notes WHERE text = '${text}'`))[0][0]);
  }

  /** The id of a new object. */
  async stored(name: string, bucket = 'all'): Promise<string> {
    return good(await this.nodes[0].upload(bucket, name, `content of ${name}`), name).object_id;
  }

  versionsOf(name: string): Promise<number> {
    const all = '/api/buckets/all/files?include_versions=true&limit=1000';
    return this.countOf(all, (item) => item.name === name);
  }

  /** A new account, which has a password. */
  async account(n: string): Promise<Account & { readonly credits: number; readonly email: string }> {
    const email = `${n}@example.org`;
    const json = { username: n, email, password: PASSWORD };
    const made = good(await this.nodes[0].as(undefined).call('/api/register', { json }), n);
    return { ...made, email };
  }

  async logIn(username: string): Promise<void> {
    const json = { username, password: PASSWORD };
    good(await this.nodes[0].as(undefined).call('/api/login', { json }), username);
  }

  /** The token that confirms the address of a new account, from its mail. */
  async confirmation({ email }: { readonly email: string }): Promise<string> {
    const { text } = await this.mails.mailTo(email, ({ text }) => /confirm-email#token=/.test(text));
    return /#token=([\w-]+)/.exec(text)?.[1] ?? assert.fail(text);
  }

  async newMachine(n: string): Promise<string> {
    const { vm_id } = await this.made('/api/vms', { name: n, instance_type: 't2.micro' });
    return `/api/vms/${vm_id}`;
  }

  /** A shared machine, which is not started. */
  machine(): Promise<string> {
    this.#machine ??= this.newMachine('shared');
    return this.#machine;
  }

  /** The id of a new recovery point, once no other is in progress. */
  async newPoint(): Promise<string> {
    const call = () => this.nodes[0].call('/api/disaster-recovery/points?wait=60', { method: 'POST' });
    const made = await eventually('the end of the point before', async () => {
      const answer = await call();
      return answer.body.code === 'point_in_progress' ? null : answer;
    });
    const { point_id: id } = good(made, 'a recovery point');
    return eventually('a recovery point', async () => {
      const { state } = await this.seen(`/api/disaster-recovery/points/${id}`);
      return state === 'creating' ? null : id;
    });
  }

  /** A point that contains the bucket `restored`, with an object. */
  point(): Promise<string> {
    this.#point ??= (async () => {
      await this.made('/api/buckets', { name: 'restored' });
      await this.stored('a.txt', 'restored');
      return this.newPoint();
    })();
    return this.#point;
  }
}

export function fileOf(content: string | Uint8Array<ArrayBuffer>, name = 'rows.csv'): FormData {
  const form = new FormData();
  form.set('file', new Blob([content]), name);
  return form;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
export function good({ status, body }: Answer, what: string): any {
  assert.ok(status < 300, `${what}: ${status} ${JSON.stringify(body)}`);
  return body;
}

/** The call with an Idempotency-Key. */
export function callUnder(idempotencyKey: string, asked: Asked): Call {
  const { method = 'POST', json, form, prefer } = asked;
  const headers = { 'idempotency-key': idempotencyKey, ...(prefer !== undefined && { prefer }) };
  if (form !== undefined) return { method, headers, body: form() };
  return json === undefined ? { method, headers } : { method, headers, json };
}
