/** Ways to break Cloudlet's promises, each with the fault test that must notice. Used by sabotage.ts. */

/** `find` must occur exactly once in the file. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Sabotage {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Test file under test/faults, without its ending. */
  readonly test: string;
  /** Only tests with this name, if the whole file would take long. */
  readonly pattern?: string;
  /** Message of a failure for the right reason; a copy that does not start is no proof. */
  readonly sees: RegExp;
  readonly rounds?: number;
}

const LOST = /is lost|cannot be read|it may hold|altered/;
const lateCommit = (ms: number) => `
      // Not before the first upload, which follows the accounts and buckets of the test.
      const late = this.#sql.some((sql) => sql.startsWith('INSERT INTO versions'));
      if (this.#database.inTransaction) this.#control.end.run();
      this.#control.begin.run();
      const outcome = message.isolated ? this.#runIsolated(message) : this.#runTogether(message);
      if (outcome === null) this.#control.rollback.run();
      else if (late) setTimeout(() => this.#database.inTransaction && this.#control.end.run(), ${ms});
      else this.#control.end.run();
      return outcome;`;
const lateBytes = (ms: number) => `
  const late = plain.slice();
  if (!last) {
    await file.writer.append(late, false);
    return {};
  }
  const durable = Promise.resolve();
  setTimeout(() => {
    void file.writer.append(late, true).then(() => makeDurable(file.name, file.writer));
  }, ${ms});`;

const COMMIT = `
      this.#control.begin.run();
      const outcome = message.isolated ? this.#runIsolated(message) : this.#runTogether(message);
      if (outcome === null) this.#control.rollback.run();
      else this.#control.end.run();
      return outcome;`;
const LAST_BYTES = `
  await file.writer.append(plain, last);
  if (!last) return {};
  const durable = makeDurable(file.name, file.writer);`;

export const SABOTAGES: readonly Sabotage[] = [
  {
    name: 'audit-kill: the entry is stored after its effect',
    test: 'audit-kill',
    pattern: 'with SQLite',
    rounds: 3,
    sees: /left the effects, right the log/,
    edits: [
      {
        file: 'server/http/audited.ts',
        find: `
      this.#isRecorded = true;`,
        replace: `
      if (status > 0) return record(response);`,
      },
    ],
  },
  {
    name: 'kill: acknowledged before COMMIT',
    test: 'kill',
    rounds: 6,
    sees: LOST,
    edits: [
      {
        file: 'server/drivers/metadata-sqlite/batch-runner.ts',
        find: COMMIT,
        replace: lateCommit(300),
      },
    ],
  },
  {
    name: 'kill: row committed before the last bytes are written',
    test: 'kill',
    rounds: 6,
    sees: LOST,
    edits: [
      {
        file: 'server/drivers/blobs-file/blob-worker.ts',
        find: LAST_BYTES,
        replace: lateBytes(30),
      },
    ],
  },
  {
    name: 'kill-after-answer: acknowledged 10 ms before COMMIT',
    test: 'kill-after-answer',
    rounds: 3,
    sees: LOST,
    edits: [
      {
        file: 'server/drivers/metadata-sqlite/batch-runner.ts',
        find: COMMIT,
        replace: lateCommit(10),
      },
    ],
  },
  {
    name: 'kill-after-answer: acknowledged 10 ms before the last bytes are written',
    test: 'kill-after-answer',
    rounds: 6,
    sees: LOST,
    edits: [
      {
        file: 'server/drivers/blobs-file/blob-worker.ts',
        find: LAST_BYTES,
        replace: lateBytes(10),
      },
    ],
  },
  {
    name: 'sweeper: removes files without asking isKnown',
    test: 'kill',
    rounds: 2,
    sees: /waited in vain: only the files of visible versions|cannot be read/,
    edits: [
      {
        file: 'server/storage/blobs/sweeper.ts',
        find: 'if (await store.isKnown(name)) continue;',
        replace: '',
      },
    ],
  },
  {
    name: 'power-loss: metadata with synchronous=OFF',
    test: 'power-loss',
    rounds: 2,
    // Mostly the account itself is lost, and its key is then unknown.
    sees: /is lost|it may hold|401 !== 200/,
    edits: [
      {
        file: 'server/drivers/metadata-sqlite/connection.ts',
        find: "['synchronous', 2],",
        replace: "['synchronous', 0],",
      },
    ],
  },
  {
    name: 'power-loss: no fdatasync of blob files',
    test: 'power-loss',
    rounds: 2,
    sees: LOST,
    edits: [
      {
        file: 'server/drivers/blobs-file/frame-writer.ts',
        find: 'await fdatasyncAsync(this.#fd);',
        replace: '',
      },
    ],
  },
  {
    name: 'damage: every checksum is right',
    test: 'damage',
    pattern: 'flipped in the (first byte|fourth chunk) is never sent',
    sees: /altered bytes were sent|the answer looked complete|200 !== 500/,
    edits: [
      {
        file: 'server/drivers/blob-frames/frame-codec.ts',
        find: 'open: (body, tail, position) => tail.readUInt32LE() === checksum(body, position),',
        replace: 'open: () => true,',
      },
    ],
  },
  {
    name: 'hot-keys: an upload replaces the version in a versioned bucket',
    test: 'hot-keys',
    rounds: 1,
    sees: /is lost/,
    edits: [
      {
        file: 'server/storage/objects/object-changes.ts',
        find: 'const replaced = await this.replaced(target);',
        replace: 'const replaced = previous;',
      },
    ],
  },
  {
    name: 'hot-keys: work on a name neither in turn nor with expectations',
    test: 'hot-keys',
    rounds: 1,
    sees: /is lost|it may hold|counters say|the latest versions differ|cannot be read/,
    edits: [
      {
        file: 'server/storage/objects/object-changes.ts',
        find: `return this.#locks.run(\`\${bucketId}/\${name}\`, () => this.#deps.changes.run(recorder, build));`,
        replace: 'return this.#deps.changes.run(recorder, build);',
      },
      {
        file: 'server/storage/objects/object-sql.ts',
        find: `        ...[object, from ?? 0],
      ],
      expectChanges: 1,`,
        replace: `        ...[object, from ?? 0],
      ],`,
      },
      {
        file: 'server/storage/objects/object-sql.ts',
        find: 'WHERE id = ? AND coalesce(current, 0) = ?`',
        replace: 'WHERE id = ? AND (1 OR coalesce(current, 0) = ?)`',
      },
      {
        file: 'server/storage/objects/object-sql.ts',
        find: `params: [id, metadata_bytes, wallMs, steadyMs, Number(bypass)],
      expectChanges: 1,`,
        replace: 'params: [id, metadata_bytes, wallMs, steadyMs, Number(bypass)],',
      },
      {
        file: 'server/storage/objects/object-sql.ts',
        find: "WHERE id = ?', params: [blob], expectChanges: 1 }",
        replace: "WHERE id = ? AND refs > 0', params: [blob] }",
      },
    ],
  },
  {
    name: 'vanishing-client: abort leaves the file',
    test: 'vanishing-client',
    pattern: 'a reset in the middle of the bytes',
    sees: /waited in vain: only the file of the kept object/,
    edits: [
      {
        file: 'server/drivers/blobs-file/file-target.ts',
        find: "{ op: 'discard', stream, remove: this.#deps.name }",
        replace: "{ op: 'discard', stream, remove: null }",
      },
    ],
  },
  {
    name: 'disk-full: no check of the free space, and a full disk taken for success',
    test: 'disk-full',
    pattern: 'filled by large uploads',
    sees: /cannot be read|altered|waited in vain/,
    edits: [
      {
        file: 'server/platform/host/disk-space.ts',
        find: `
    if (bytes > available) {
      void this.refresh();
      throw this.#refused();
    }`,
        replace: '',
      },
      {
        file: 'server/platform/host/disk-space.ts',
        find: 'if (bytes > available) throw this.#refused();',
        replace: '',
      },
      {
        file: 'server/drivers/blobs-file/frame-writer.ts',
        find: "throw this.#fail(asFault(error, 'write'));",
        replace: "if (asFault(error, 'write').code !== 'ENOSPC') throw this.#fail(asFault(error, 'write'));",
      },
      {
        file: 'server/drivers/blobs-file/frame-writer.ts',
        find: "this.#fail(asFault(error, 'sync'));",
        replace: "if (asFault(error, 'sync').code !== 'ENOSPC') this.#fail(asFault(error, 'sync'));",
      },
    ],
  },
];
