/**
 * Calls recorded by the audit log, over REST, S3 and the operator's commands; and their effects beside the
 * entries.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type KeyPair, S3Client, type S3Request, textsOf } from '../acceptance/s3-kit.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';

interface Entry {
  readonly action: string;
  readonly target: string;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** The existing resources, and those expected from the audit log. */
interface Compared {
  readonly effects: readonly string[];
  readonly entries: readonly string[];
}

interface Identity {
  readonly key: string;
  readonly pair: KeyPair;
  /** The account whose credits and state administrators change. */
  readonly pupilId: number;
}

interface Actors {
  readonly admin: Client;
  readonly owner: Client;
  readonly pupilId: number;
  readonly s3: S3Client;
}

const LOGGED = 'logged-objects';
const TAGGED = 'tagged';

export class AuditedWork {
  readonly #cloud: CloudProcess;
  readonly #random: () => number;
  readonly #identity: Identity;
  #made = 0;
  /** Calls without an answer. */
  unanswered = 0;
  answered = 0;
  readonly faults: string[] = [];

  private constructor(cloud: CloudProcess, random: () => number, identity: Identity) {
    this.#cloud = cloud;
    this.#random = random;
    this.#identity = identity;
  }

  static async begin(cloud: CloudProcess, random: () => number): Promise<AuditedWork> {
    const anyone = new Client(cloud.api);
    const [owner, pupil] = [await anyone.register(), await anyone.register()];
    const client = anyone.as(owner.api_key);
    for (const name of [LOGGED, TAGGED]) await client.call('/api/buckets', { json: { name } });
    const json = { data_events: 'writes' };
    await client.call(`/api/buckets/${LOGGED}/settings`, { method: 'PATCH', json });
    const { body } = await client.call('/api/account/access-keys', { json: { name: 's3', scopes: ['*'] } });
    return new AuditedWork(cloud, random, { key: owner.api_key, pupilId: pupil.id, pair: body });
  }

  #actors(): Actors {
    const { key, pair, pupilId } = this.#identity;
    const anyone = new Client(this.#cloud.api);
    const s3 = new S3Client(this.#cloud.data, pair);
    return { admin: anyone.as(ADMIN_KEY), owner: anyone.as(key), s3, pupilId };
  }

  /** Works until the cloud is killed. */
  async run(): Promise<void> {
    const actors = this.#actors();
    const lanes = [
      this.#buckets(actors),
      this.#bucketsByS3(actors),
      this.#keys(actors),
      this.#people(actors),
      this.#credits(actors),
      this.#states(actors),
      this.#tags(actors),
      this.#objects(actors),
      this.#objectsByS3(actors),
      this.#byOperator(),
    ];
    for (const result of await Promise.allSettled(lanes)) {
      // The cloud was killed during the call: fetch throws a TypeError, node:http an error with a code.
      const { reason } = result as PromiseRejectedResult;
      assert.ok(reason instanceof TypeError || typeof reason?.code === 'string', reason);
      this.unanswered++;
    }
  }

  #name(kind: string): string {
    return `${kind}-${++this.#made}`;
  }

  #often(share: number): boolean {
    return this.#random() < share;
  }

  /** Sends calls, and records wrong answers. */
  async #call(client: Client, path: string, call: object = {}) {
    const { status, body } = await whenReached(() => client.call(path, call));
    this.#note(path, status, JSON.stringify(body));
    return body;
  }

  async #callS3(s3: S3Client, request: string, more: S3Request = {}) {
    const [method = '', path = ''] = request.split(' ');
    const { status, text } = await whenReached(() => s3.call(method, path, more));
    this.#note(request, status, text);
  }

  #note(what: string, status: number, said: string): void {
    this.answered++;
    if (status >= 300) this.faults.push(`${what}: ${status} ${said.slice(0, 300)}`);
  }

  async #buckets({ owner }: Actors): Promise<never> {
    for (;;) {
      const name = this.#name('rest');
      // An Idempotency-Key stores the answer in the same commit.
      const headers = this.#often(0.5) ? { 'idempotency-key': name } : {};
      await this.#call(owner, '/api/buckets', { json: { name }, headers });
      if (this.#often(0.9)) await this.#call(owner, `/api/buckets/${name}`, { method: 'DELETE' });
    }
  }

  async #bucketsByS3({ s3 }: Actors): Promise<never> {
    for (;;) {
      const name = this.#name('s3');
      await this.#callS3(s3, `PUT /${name}`);
      if (this.#often(0.9)) await this.#callS3(s3, `DELETE /${name}`);
    }
  }

  async #keys({ owner }: Actors): Promise<never> {
    for (;;) {
      const json = { name: this.#name('key'), scopes: ['storage:read'] };
      const { id } = await this.#call(owner, '/api/account/access-keys', { json });
      if (this.#often(0.95)) await this.#call(owner, `/api/account/access-keys/${id}`, { method: 'DELETE' });
    }
  }

  async #people({ admin, owner }: Actors): Promise<never> {
    for (;;) {
      await this.#call(admin, '/api/admin/invitations', { json: { label: this.#name('invited') } });
      if (this.#often(0.8)) continue;
      const username = this.#name('joined');
      const json = { username, email: `${username}@example.org`, password: 'correct horse battery' };
      await this.#call(owner.as(undefined), '/api/register', { json });
    }
  }

  async #credits({ admin, pupilId }: Actors): Promise<never> {
    for (;;) {
      const name = this.#name('prize');
      const headers = this.#often(0.5) ? { 'idempotency-key': name } : {};
      const json = { amount: 1, reason: name };
      await this.#call(admin, `/api/admin/accounts/${pupilId}/credits`, { json, headers });
    }
  }

  async #states({ admin, pupilId }: Actors): Promise<never> {
    const path = `/api/admin/accounts/${pupilId}`;
    for (;;) {
      await this.#call(admin, `${path}/suspend`, { json: { reason: this.#name('reason') } });
      await this.#call(admin, `${path}/resume`, { method: 'POST' });
    }
  }

  /** Each change increments the tag, so the tag shows the number of changes. */
  async #tags({ owner, s3 }: Actors): Promise<never> {
    for (let next = (await tagOf(owner)) + 1; ; next++) {
      if (this.#often(0.5)) {
        const json = { tags: { n: String(next) } };
        await this.#call(owner, `/api/buckets/${TAGGED}/settings`, { method: 'PATCH', json });
      } else {
        const body = `<Tagging><TagSet><Tag><Key>n</Key><Value>${next}</Value></Tag></TagSet></Tagging>`;
        await this.#callS3(s3, `PUT /${TAGGED}`, { query: 'tagging', body });
      }
    }
  }

  async #objects({ owner }: Actors): Promise<never> {
    for (;;) {
      const form = new FormData();
      const name = this.#name('object');
      form.set('name', name);
      form.set('file', new Blob(['x'.repeat(this.#often(0.2) ? 40_000 : 10)]), name);
      const { object_id: id } = await this.#call(owner, `/api/buckets/${LOGGED}/upload`, { body: form });
      if (this.#often(0.7)) await this.#call(owner, `/api/storage/${id}`, { method: 'DELETE' });
    }
  }

  async #objectsByS3({ s3 }: Actors): Promise<never> {
    for (;;) {
      const names = [this.#name('object-s3'), this.#name('object-s3')];
      for (const name of names) await this.#callS3(s3, `PUT /${LOGGED}/${name}`, { body: 'x' });
      const keys = names.map((name) => `<Object><Key>${name}</Key></Object>`).join('');
      const body = `<Delete>${keys}</Delete>`;
      const pick = this.#random();
      if (pick < 0.5) await this.#callS3(s3, `POST /${LOGGED}`, { query: 'delete', body });
      else if (pick < 0.8) await this.#callS3(s3, `DELETE /${LOGGED}/${names[0]}`);
    }
  }

  async #byOperator(): Promise<never> {
    for (;;) {
      const username = this.#name('operator');
      const args = ['--username', username, '--email', `${username}@example.org`];
      const words = ['admin', 'create-account', ...args, '--data-dir', this.#cloud.dataDir];
      const { code, stderr } = await runCloudlet(words, { env: {} });
      if (code !== 0) throw Object.assign(new Error(stderr), { code: 'ENDED' });
      this.answered++;
    }
  }

  /** Compares the existing resources with the entries; returns the number of entries. */
  async compare(): Promise<number> {
    const actors = this.#actors();
    const text = await readLog(actors.admin);
    const lines = text.split('\n').filter((line) => line !== '');
    const log = lines.map((line): Entry => JSON.parse(line));
    for (const [what, { effects, entries }] of Object.entries(await comparisons(actors, log))) {
      assert.deepEqual(new Set(effects), new Set(entries), `${what}: left the effects, right the log`);
    }
    const chain = (await whenReached(() => actors.admin.call('/api/admin/audit/verify'))).body;
    assert.equal(chain.ok, true, JSON.stringify(chain));
    return log.length;
  }
}

/** The whole log. */
async function readLog(admin: Client): Promise<string> {
  const path = '/api/audit?account_id=all&outcome=done&format=jsonl';
  const answer = await whenReached(() => admin.fetch(path));
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text;
}

const AGAIN_MS = 50;

/** Repeats the call while the metadata cannot be reached, as on a busy host: nothing was stored then. */
async function whenReached<T extends { readonly status: number }>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await call();
    if (answer.status !== 503) return answer;
    await sleep(AGAIN_MS);
  }
}

/** Resources created and not removed according to the log. */
function standing(log: readonly Entry[], made: readonly string[], removed: readonly string[]): string[] {
  const targets = (actions: readonly string[]) =>
    log.filter(({ action }) => actions.includes(action)).map(({ target }) => target);
  const gone = new Set(targets(removed));
  return targets(made).filter((target) => !gone.has(target));
}

async function tagOf(owner: Client): Promise<number> {
  const { body } = await whenReached(() => owner.call(`/api/buckets/${TAGGED}/settings`));
  return Number(body.tags?.n ?? 0);
}

/** Every page of a list. */
async function all(client: Client, path: string): Promise<Record<string, string>[]> {
  const found: Record<string, string>[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const path: string = next;
    const { status, body, headers } = await whenReached(() => client.call(path));
    assert.equal(status, 200, JSON.stringify(body));
    found.push(...body);
    const link = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    next = link?.replace(/^https?:\/\/[^/]+/, '');
  }
  return found;
}

async function comparisons(actors: Actors, log: readonly Entry[]): Promise<Record<string, Compared>> {
  const { admin, owner, pupilId, s3 } = actors;
  const of = (action: string) => log.filter((entry) => entry.action === action);
  const buckets = (await all(owner, '/api/buckets?limit=1000')).map(({ name }) => String(name));
  const made = standing(log, ['createBucket', 's3CreateBucket'], ['deleteBucket', 's3DeleteBucket']);
  const listing = await whenReached(() => s3.call('GET', `/${LOGGED}`, { query: 'list-type=2' }));
  assert.equal(listing.status, 200, listing.text);
  const writes = [
    ['uploadObject', 's3PutObject'],
    ['deleteObject', 's3DeleteObject', 's3DeleteObjects'],
  ] as const;
  const people = await all(admin, '/api/admin/accounts?limit=1000');
  const pupil = (await whenReached(() => admin.call(`/api/admin/accounts/${pupilId}`))).body;
  const last = log.find(({ action }) => /^admin(?:Suspend|Resume)Account$/.test(action));
  const suspended = last?.action === 'adminSuspendAccount' ? last.detail?.reason : null;
  const changes = of('changeBucketSettings').filter(({ target }) => target === TAGGED);
  const byS3 = log.filter(({ action, target }) => action === 's3PutBucketTagging' && target === TAGGED);
  const keys = (await all(owner, '/api/account/access-keys?limit=1000')).map(({ id }) => String(id));
  const invitations = await all(admin, '/api/admin/invitations?limit=1000');
  return {
    buckets: { effects: buckets, entries: made },
    objects: {
      effects: textsOf(listing.text, 'Key').map((name) => `${LOGGED}/${name}`),
      entries: standing(log, ...writes),
    },
    keys: { effects: keys, entries: standing(log, ['createAccessKey'], ['deleteAccessKey']) },
    invitations: {
      effects: invitations.map(({ id }) => String(id)),
      entries: of('adminCreateInvitation').map(({ target }) => target),
    },
    people: {
      effects: people.filter(({ username }) => username !== 'admin').map(({ id }) => String(id)),
      entries: standing(log, ['register', 'adminCreateAccount'], []),
    },
    credits: {
      effects: [String(pupil.credits - 10)],
      entries: [String(of('adminAdjustCredits').length)],
    },
    state: { effects: [String(pupil.suspended_reason)], entries: [String(suspended ?? null)] },
    tags: { effects: [String(await tagOf(owner))], entries: [String(changes.length + byS3.length)] },
  };
}
