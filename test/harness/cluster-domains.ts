/** Load on more domains of a cluster, for ClusterLoad: S3, credits, and a database at the host node. */
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { CloudProcess } from './cloud-process.ts';
import { ask, CALL_MS, type ClusterCalls } from './cluster-calls.ts';

const BUCKET = 'kept-by-s3';
const CREDITS = 0.25;

export class ClusterDomains {
  readonly #calls: ClusterCalls;
  readonly faults: string[] = [];
  readonly counts = { puts: 0, credits: 0, rows: 0 };
  readonly #put = new Map<string, string>();
  readonly #rows: number[] = [];
  /** At each node's data origin, which changes at its restart. */
  readonly #clients = new Map<string, S3Client>();
  #credentials = { accessKeyId: '', secretAccessKey: '' };
  /** Only its credits change, by whole corrections. */
  #account = { id: 0, credits: 0 };
  #database = '';

  constructor(calls: ClusterCalls) {
    this.#calls = calls;
  }

  /** Creates the resources that the steps need. */
  async prepare(): Promise<void> {
    await this.#made('/api/buckets', { name: BUCKET });
    const key = await this.#made('/api/account/access-keys', { name: 'S3', scopes: ['*'] });
    this.#credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
    const names = { username: 'whose-credits', email: 'whose-credits@example.org' };
    const account = await this.#made('/api/admin/accounts', { ...names, password: 'correct horse battery' });
    this.#account = { id: account.id, credits: account.credits };
    const { database_id } = await this.#made('/api/databases', { name: 'under-load' });
    this.#database = `/api/databases/${database_id}/query`;
    await this.#query('CREATE TABLE numbers (number INTEGER PRIMARY KEY)');
  }

  get steps(): Readonly<Record<string, () => Promise<void>>> {
    return { put: () => this.#putObject(), credit: () => this.#credit(), insert: () => this.#insert() };
  }

  /** Compares with the answers of each node; call it once all are up. */
  async check(): Promise<void> {
    for (const node of this.#calls.nodes) {
      for (const [key, content] of this.#put) {
        const text = await this.#get(node, key).catch(String);
        if (text !== content) this.#fault(`S3 ${key} at ${node.data}: ${text.slice(0, 200)}`);
      }
      const { text } = await ask(node, `GET /api/admin/accounts/${this.#account.id}`);
      const { credits } = JSON.parse(text) as { credits: number };
      const expected = this.#account.credits + this.counts.credits * CREDITS;
      if (credits !== expected) this.#fault(`${credits} credits instead of ${expected}`);
      // As a single value: an answer has 1,000 rows at most.
      const [[all] = []] = await this.#query('SELECT json_group_array(number) FROM numbers', node);
      const rows = new Set(JSON.parse(String(all)) as number[]);
      const lost = this.#rows.filter((number) => !rows.has(number));
      if (lost.length > 0) this.#fault(`${lost.length} rows of a database are lost: ${lost.slice(0, 10)}`);
    }
    for (const client of this.#clients.values()) client.destroy();
  }

  #fault(text: string): void {
    this.faults.push(text);
  }

  /** Once S3 has stored it at one node, every other node has it immediately. */
  async #putObject(): Promise<void> {
    const key = `object-${this.#calls.next()}`;
    const body = `content of ${key}`;
    const node = this.#untroubled()[0];
    if (node === undefined) return;
    const put = new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body });
    const isStored = await this.#clientAt(node)
      .send(put, { abortSignal: AbortSignal.timeout(CALL_MS) })
      .then(
        () => true,
        (error) => this.#refused(error, `S3 PUT ${key}`),
      );
    if (!isStored) return;
    this.counts.puts++;
    this.#put.set(key, body);
    for (const other of this.#untroubled()) {
      const text = await this.#get(other, key).catch((error) => {
        // For a node that was disturbed meanwhile.
        if (this.#calls.troubled.has(other)) return body;
        return this.#refused(error, `S3 GET ${key}`) ? body : body;
      });
      if (text !== body) this.#fault(`${key} was put, and another node has ${text.slice(0, 100)}`);
    }
  }

  /** Without an answer, or with "not now", the outcome is unknown. */
  #refused(error: { name: string; $metadata?: { httpStatusCode?: number } }, what: string): false {
    const status = error.$metadata?.httpStatusCode;
    if (status !== undefined && status !== 503) this.#fault(`${what}: ${status} ${error.name}`);
    return false;
  }

  async #credit(): Promise<void> {
    const json = { amount: CREDITS, reason: `correction ${this.#calls.next()}` };
    const path = `/api/admin/accounts/${this.#account.id}/credits`;
    const { status, text } = await this.#calls.must('POST', path, { json });
    if (status !== 200) return this.#fault(`credits: ${status} ${text}`);
    this.counts.credits++;
  }

  /** At the host, which may have executed it although it was killed before it answered. */
  async #insert(): Promise<void> {
    const number = this.#calls.next();
    await this.#query(`INSERT OR IGNORE INTO numbers VALUES (${number})`);
    this.#rows.push(number);
    this.counts.rows++;
  }

  async #query(statement: string, at?: CloudProcess): Promise<unknown[][]> {
    const json = { statement, read_only: false };
    const place = at === undefined ? undefined : () => at;
    const { status, text } =
      place === undefined
        ? await this.#calls.must('POST', this.#database, { json })
        : await this.#calls.mustAt(place, ['POST', this.#database], { json });
    if (status !== 200) throw new Error(`${statement}: ${status} ${text}`);
    return JSON.parse(text).rows;
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async #made(path: string, json: object): Promise<any> {
    const { status, text } = await this.#calls.must('POST', path, { json });
    if (status !== 201) throw new Error(`${path}: ${status} ${text}`);
    return JSON.parse(text);
  }

  async #get(node: CloudProcess, Key: string): Promise<string> {
    const get = new GetObjectCommand({ Bucket: BUCKET, Key });
    const abortSignal = AbortSignal.timeout(CALL_MS);
    const { Body } = await this.#clientAt(node).send(get, { abortSignal });
    return Body?.transformToString() ?? '';
  }

  #clientAt({ data }: CloudProcess): S3Client {
    const known = this.#clients.get(data);
    if (known !== undefined) return known;
    const made = new S3Client({
      endpoint: data,
      region: 'us-east-1',
      forcePathStyle: true,
      maxAttempts: 1,
      credentials: this.#credentials,
    });
    this.#clients.set(data, made);
    return made;
  }

  /** In a different order each time. */
  #untroubled(): CloudProcess[] {
    const nodes = this.#calls.nodes.filter((node) => !this.#calls.troubled.has(node));
    const first = this.#calls.next() % Math.max(1, nodes.length);
    return [...nodes.slice(first), ...nodes.slice(0, first)];
  }
}
