/** A small HTTP client for black-box tests: calls the API, without state or checks. */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed if the answer is JSON, otherwise the text. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged. */
  readonly body?: RequestInit['body'];
}

export interface Account {
  readonly id: number;
  readonly username: string;
  readonly api_key: string;
}

/** The headers with which a page of the cloud acts in the session of this log-in. */
export interface SessionHeaders extends Readonly<Record<string, string>> {
  readonly cookie: string;
  readonly 'cloudlet-session': string;
}

export function sessionOf({ headers, body }: Answer): SessionHeaders {
  const cookie = (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
  return { cookie, 'cloudlet-session': body.session_token, 'sec-fetch-site': 'same-origin' };
}

let counter = 0;

export class Client {
  readonly base: string;
  readonly key: string | undefined;

  constructor(base: string, key?: string) {
    this.base = base;
    this.key = key;
  }

  /** The same cloud with another key, or none. */
  as(key: string | undefined): Client {
    return new Client(this.base, key);
  }

  async call(path: string, call: Call = {}): Promise<Answer> {
    const response = await this.fetch(path, call);
    const text = await response.text();
    const isJson = (response.headers.get('content-type') ?? '').includes('json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  /** The raw response. */
  fetch(path: string, { method, headers, json, body }: Call = {}): Promise<Response> {
    const init: RequestInit = {
      method: method ?? (json === undefined && body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(this.key === undefined ? {} : { 'x-api-key': this.key }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      redirect: 'manual',
    };
    if (json !== undefined) init.body = JSON.stringify(json);
    else if (body !== undefined) init.body = body;
    return fetch(this.base + path, init);
  }

  /** Registers a new account with its own name. */
  async register(): Promise<Account> {
    const username = `user-${process.pid}-${++counter}`;
    const json = { username, email: `${username}@example.org`, password: 'correct horse battery' };
    const { status, body } = await this.call('/api/register', { json });
    if (status !== 201) throw new Error(`registration answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** A client with the key of a new account. */
  async newUser(): Promise<Client> {
    return this.as((await this.register()).api_key);
  }

  /** Uploads bytes as a multipart form. */
  upload(
    bucket: string,
    name: string,
    content: Uint8Array | string,
    fields: Record<string, string> = {},
  ): Promise<Answer> {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.set(field, value);
    form.set('name', name);
    form.set('file', new Blob([content as Uint8Array<ArrayBuffer>]), 'upload.bin');
    return this.call(`/api/buckets/${bucket}/upload`, { body: form });
  }

  /** The bytes of an object. */
  async download(objectId: string, query = ''): Promise<Buffer> {
    const response = await this.fetch(`/api/storage/${objectId}/download${query}`);
    if (!response.ok) throw new Error(`download answered ${response.status}: ${await response.text()}`);
    return Buffer.from(await response.arrayBuffer());
  }
}
