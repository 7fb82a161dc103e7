/**
 * Random histories of a bucket, each step over REST or S3, compared with a model: both list the same versions
 * and return the same bytes.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Client } from '../harness/client.ts';
import {
  completion,
  elementsOf,
  newUpload,
  pathOf,
  type S3Client,
  setVersioning,
  textOf,
  textsOf,
} from './s3-kit.ts';

const NAMES = ['a', 'a/b', 'é +&'];

interface Version {
  /** As returned by REST. */
  readonly id: string;
  /** null: a delete marker. */
  readonly content: string | null;
  readonly isNull: boolean;
}

interface Step {
  readonly door: 'rest' | 's3';
  readonly kind: 'put' | 'parts' | 'copy' | 'remove' | 'removeMany' | 'removeVersion' | 'restore' | 'version';
  readonly name: string;
  readonly other: string;
  readonly pick: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  door: fc.constantFrom('rest', 's3'),
  kind: fc.constantFrom(
    ...(['put', 'put', 'put', 'parts', 'copy', 'remove', 'remove', 'removeMany'] as const),
    ...(['removeVersion', 'removeVersion', 'restore', 'version'] as const),
  ),
  name: fc.constantFrom(...NAMES),
  other: fc.constantFrom(...NAMES),
  pick: fc.nat({ max: 2 }),
});

let contents = 0;

class History {
  readonly #client: Client;
  readonly #s3: S3Client;
  readonly #bucket: string;
  #versioning: 'off' | 'on' | 'suspended' = 'off';
  /** Oldest first. */
  readonly #objects = new Map<string, Version[]>();

  constructor(client: Client, s3: S3Client, bucket: string) {
    this.#client = client;
    this.#s3 = s3;
    this.#bucket = bucket;
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case 'put':
        return this.#put(step);
      case 'parts':
        return this.#putParts(step);
      case 'copy':
        return this.#copy(step);
      case 'remove':
        return step.door === 's3' ? this.#removeByKey(step.name) : this.#removeByRest(step.name);
      case 'removeMany':
        return this.#removeMany(step);
      case 'removeVersion':
        return this.#removeVersion(step);
      case 'restore':
        return this.#restore(step);
      case 'version':
        return this.#setVersioning(step);
    }
  }

  #versions(name: string): Version[] {
    return this.#objects.get(name) ?? [];
  }

  #keep(name: string, versions: Version[]): void {
    if (versions.length === 0) this.#objects.delete(name);
    else this.#objects.set(name, versions);
  }

  /** The new newest version; without versioning it replaces the null version. */
  #place(name: string, id: string, content: string | null): void {
    const isNull = this.#versioning !== 'on';
    const rest = this.#versions(name).filter((version) => !(isNull && version.isNull));
    this.#keep(name, [...rest, { id, content, isNull }]);
  }

  async #put({ door, name }: Step): Promise<void> {
    const content = `content ${++contents}`;
    if (door === 'rest') {
      const { status, body } = await this.#client.upload(this.#bucket, name, content);
      assert.equal(status, 200, JSON.stringify(body));
      return this.#place(name, body.version_id, content);
    }
    await this.#s3.ok('PUT', pathOf(this.#bucket, name), { body: content });
    this.#place(name, await this.#newestId(name), content);
  }

  async #putParts({ name }: Step): Promise<void> {
    const path = pathOf(this.#bucket, name);
    const content = `content ${++contents}`;
    const id = await newUpload(this.#s3, path);
    const { headers } = await this.#s3.ok('PUT', path, {
      query: `partNumber=2&uploadId=${id}`,
      body: content,
    });
    const body = completion([{ number: 2, etag: headers.etag }]);
    await this.#s3.ok('POST', path, { query: `uploadId=${id}`, body });
    this.#place(name, await this.#newestId(name), content);
  }

  async #copy({ name, other }: Step): Promise<void> {
    if (name === other) return;
    const source = this.#versions(other).at(-1);
    const headers = { 'x-amz-copy-source': pathOf(this.#bucket, other) };
    const call = ['PUT', pathOf(this.#bucket, name), { headers }] as const;
    if (source === undefined || source.content === null) {
      await this.#s3.refused(404, 'NoSuchKey', [...call]);
      return;
    }
    await this.#s3.ok(...call);
    this.#place(name, await this.#newestId(name), source.content);
  }

  /** S3's delete adds a marker wherever versions are or were enabled. */
  async #removeByKey(name: string): Promise<void> {
    await this.#s3.ok('DELETE', pathOf(this.#bucket, name));
    await this.#markRemoved(name);
  }

  async #removeMany({ name, other }: Step): Promise<void> {
    const names = [...new Set([name, other])];
    const keys = names.map((each) => `<Object><Key>${each.replace('&', '&amp;')}</Key></Object>`);
    const body = `<Delete><Quiet>true</Quiet>${keys.join('')}</Delete>`;
    const { text } = await this.#s3.ok('POST', `/${this.#bucket}`, { query: 'delete', body });
    assert.doesNotMatch(text, /<Error>/);
    for (const each of names) await this.#markRemoved(each);
  }

  async #markRemoved(name: string): Promise<void> {
    if (this.#versioning === 'off') this.#keep(name, []);
    else this.#place(name, await this.#newestId(name), null);
  }

  /** REST leaves a marker only if something can be restored, and refuses deleted objects. */
  async #removeByRest(name: string): Promise<void> {
    const versions = this.#versions(name);
    if (versions.length === 0) return;
    const path = `/api/storage/${await this.#objectId(name)}`;
    const { status, body } = await this.#client.call(path, { method: 'DELETE' });
    if (versions.at(-1)?.content === null) return assert.equal(status, 404, JSON.stringify(body));
    assert.equal(status, 200, JSON.stringify(body));
    const kept = versions.filter(({ isNull }) => !isNull || this.#versioning === 'on');
    if (kept.length > 0) this.#place(name, body.version_id, null);
    else this.#keep(name, []);
  }

  async #removeVersion({ door, name, pick }: Step): Promise<void> {
    const versions = this.#versions(name);
    const version = versions[pick];
    if (version === undefined) return;
    if (door === 'rest') {
      const path = `/api/storage/${await this.#objectId(name)}?version_id=${version.id}`;
      const { status, body } = await this.#client.call(path, { method: 'DELETE' });
      assert.equal(status, 200, JSON.stringify(body));
    } else {
      const query = `versionId=${version.isNull ? 'null' : version.id}`;
      await this.#s3.ok('DELETE', pathOf(this.#bucket, name), { query });
    }
    this.#keep(
      name,
      versions.filter((each) => each !== version),
    );
  }

  async #restore({ name, pick }: Step): Promise<void> {
    const versions = this.#versions(name);
    const version = versions[pick];
    if (version === undefined || version.content === null || version === versions.at(-1)) return;
    const path = `/api/storage/${await this.#objectId(name)}/restore`;
    const { status, body } = await this.#client.call(path, { json: { version_id: version.id } });
    assert.equal(status, 200, JSON.stringify(body));
    this.#place(name, body.version_id, version.content);
  }

  async #setVersioning({ door, pick }: Step): Promise<void> {
    const isOn = pick > 0;
    if (door === 's3') {
      await setVersioning(this.#s3, this.#bucket, isOn ? 'Enabled' : 'Suspended');
      this.#versioning = isOn ? 'on' : 'suspended';
      return;
    }
    const call = { method: 'PATCH', json: { versioning: isOn } };
    const { status } = await this.#client.call(`/api/buckets/${this.#bucket}`, call);
    assert.equal(status, 200);
    if (isOn) this.#versioning = 'on';
    else if (this.#versioning === 'on') this.#versioning = 'suspended';
  }

  async #restVersions(): Promise<{ name: string; id: string; version_id: string; [key: string]: unknown }[]> {
    const path = `/api/buckets/${this.#bucket}/files?include_versions=true&limit=1000`;
    return (await this.#client.call(path)).body;
  }

  /** The newest version over REST, which has ids for versions that S3 calls null. */
  async #newestId(name: string): Promise<string> {
    const found = (await this.#restVersions()).find((each) => each.name === name && each.is_latest);
    return found?.version_id ?? assert.fail(`REST lists no ${name}`);
  }

  async #objectId(name: string): Promise<string> {
    return (await this.#restVersions()).find((each) => each.name === name)?.id ?? assert.fail(`no ${name}`);
  }

  /** Compares both lists and all bytes. */
  async check(): Promise<void> {
    const expected = [...this.#objects]
      .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      .flatMap(([name, versions]) =>
        versions.toReversed().map((version, index) => ({ name, ...version, isLatest: index === 0 })),
      );
    const { text } = await this.#s3.ok('GET', `/${this.#bucket}`, { query: 'versions' });
    const byS3 = [...text.matchAll(/<(Version|DeleteMarker)>(.*?)<\/\1>/gs)].map(([, kind, inner = '']) => [
      ...[textOf(inner, 'Key'), textOf(inner, 'VersionId')],
      ...[kind === 'DeleteMarker', textOf(inner, 'IsLatest') === 'true'],
    ]);
    const shown = expected.map(({ name, id, content, isNull, isLatest }) => [
      ...[name, isNull ? 'null' : id],
      ...[content === null, isLatest],
    ]);
    assert.deepEqual(byS3, shown, 'versions by S3');
    const byRest = (await this.#restVersions()).map((each) => [
      ...[each.name, each.version_id],
      ...[each.is_delete_marker, each.is_latest],
    ]);
    const named = expected.map(({ name, id, content, isLatest }) => [name, id, content === null, isLatest]);
    assert.deepEqual(byRest, named, 'versions by REST');
    const live = expected.filter(({ isLatest, content }) => isLatest && content !== null);
    const listed = await this.#s3.ok('GET', `/${this.#bucket}`, { query: 'list-type=2' });
    const keys = elementsOf(listed.text, 'Contents').flatMap((inner) => textsOf(inner, 'Key'));
    assert.deepEqual(
      keys,
      live.map(({ name }) => name),
      'keys by S3',
    );
    for (const version of expected.filter(({ content }) => content !== null)) await this.#readBoth(version);
  }

  async #readBoth({ name, id, content, isNull }: Version & { readonly name: string }): Promise<void> {
    const query = `versionId=${isNull ? 'null' : id}`;
    const read = await this.#s3.ok('GET', pathOf(this.#bucket, name), { query });
    assert.equal(read.text, content, `${name} ${id} by S3`);
    const downloaded = await this.#client.download(await this.#objectId(name), `?version_id=${id}`);
    assert.equal(String(downloaded), content, `${name} ${id} by REST`);
  }
}

/**
 * Runs `count` histories of at most 20 steps, each in its own bucket. Rejects with the shortest failing one.
 */
export async function checkHistories(
  { client, s3 }: { readonly client: Client; readonly s3: S3Client },
  count: number,
): Promise<void> {
  let buckets = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20, size: 'max' }), async (steps) => {
      const bucket = `history-${++buckets}`;
      await s3.ok('PUT', `/${bucket}`);
      const history = new History(client, s3, bucket);
      for (const each of steps) await history.run(each);
      await history.check();
      await client.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
    }),
    { numRuns: count },
  );
}
