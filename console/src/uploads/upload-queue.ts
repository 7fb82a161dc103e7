/**
 * The upload queue, independent of the current page. Three files are sent at a time. Items stay in
 * the list: failed or cancelled ones with the reason, until they are retried or removed. When the
 * connection is lost or the session ends, everything waits and continues afterwards: a large file
 * after the last received part (part-sender.ts), any other from its start; it is stored once even
 * if it was received before.
 */
import { CloudError } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { accountQuery, isSignedOut, queryClient, sessionEnded } from '../queries.ts';
import { text } from '../texts/text.ts';
import { LARGE_BYTES, sendInParts } from './part-sender.ts';

type UploadState = 'waiting' | 'sending' | 'paused' | 'done' | 'failed' | 'cancelled';

export interface UploadItem extends NewUpload {
  readonly id: number;
  readonly state: UploadState;
  /** 0 until known. */
  readonly sizeBytes: number;
  readonly sentBytes: number;
  readonly error: unknown;
  /** Idempotency key of this upload, for all attempts. */
  readonly key: string;
  /** Number of lost connections during the upload. */
  readonly losses: number;
}

interface NewUpload {
  readonly file: File;
  readonly bucket: string;
  /** The name of the object. */
  readonly name: string;
  /** The multipart upload of a large file, once known: the next attempt continues it. */
  readonly uploadId?: string | undefined;
}

/** Why the queue is paused. */
type Halt = 'connection' | 'session';

interface Shown {
  readonly items: readonly UploadItem[];
  readonly halt: Halt | undefined;
}

const SENT_AT_ONCE = 3;
/** Notification interval, because the byte count changes too fast to read. */
const TOLD_EVERY_MS = 150;
/** Time slice in ms before other work runs. */
const MEASURED_MS = 8;
/** Refresh interval of lists while uploads finish. */
const REFRESHED_EVERY_MS = 2000;
/** Poll interval while the cloud does not respond. */
const ASKED_EVERY_MS = 1500;
/** A file whose connection breaks this often, while the cloud responds to other calls, has failed. */
const MOST_LOSSES = 3;

class UploadQueue {
  #items: UploadItem[] = [];
  #shown: Shown = { items: [], halt: undefined };
  #nextId = 1;
  /** Index of each id in #items. */
  #indexes = new Map<number, number>();
  readonly #sending = new Map<number, AbortController>();
  readonly #watchers = new Set<() => void>();
  #telling: ReturnType<typeof setTimeout> | undefined;
  #asking: ReturnType<typeof setTimeout> | undefined;
  /** No waiting item has a lower index. */
  #firstWaiting = 0;
  #halt: Halt | undefined;
  /** Id of the account that owns the queue. */
  #owner: number | undefined;
  /** Buckets that files were added to since the pages were refreshed. */
  readonly #changed = new Set<string>();

  /** For useSyncExternalStore. */
  readonly subscribe = (watcher: () => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };
  readonly snapshot = () => this.#shown;

  add(uploads: readonly NewUpload[]): void {
    this.#owner = queryClient.getQueryData(accountQuery.queryKey)?.id;
    const first = this.#nextId;
    for (const upload of uploads) {
      const id = this.#nextId++;
      this.#indexes.set(id, this.#items.length);
      this.#items.push({ ...upload, ...this.#fresh(id), id, sizeBytes: 0 });
    }
    void this.#measure(first, uploads);
    this.#begin();
  }

  /** Browsers read the size of a file from disk: all at once, many files would block the page. */
  async #measure(firstId: number, uploads: readonly NewUpload[]): Promise<void> {
    let began = performance.now();
    for (const [at, { file }] of uploads.entries()) {
      this.#set(firstId + at, { sizeBytes: file.size });
      if (performance.now() - began < MEASURED_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      began = performance.now();
    }
  }

  cancel(id: number): void {
    this.#cancelOne(id);
    this.#begin();
  }

  cancelAll(): void {
    for (const item of this.#items) if (isOpen(item)) this.#cancelOne(item.id);
  }

  /** Its received parts are removed too. */
  #cancelOne(id: number): void {
    const item = this.#item(id);
    if (item === undefined) return;
    const { bucket, uploadId } = item;
    this.#set(id, { state: 'cancelled', sentBytes: 0, uploadId: undefined });
    this.#sending.get(id)?.abort();
    if (uploadId !== undefined) cloud.abortUpload(bucket, uploadId).catch(() => {});
  }

  /** The received parts are kept. */
  pause(id: number): void {
    this.#set(id, { state: 'paused' });
    this.#sending.get(id)?.abort();
    this.#begin();
  }

  resume(id: number): void {
    if (this.#item(id)?.state !== 'paused') return;
    this.#waitAgain(id, {});
    this.#begin();
  }

  /** Retries failed and cancelled uploads. */
  retry(ids?: readonly number[]): void {
    for (const { id, state } of this.#items) {
      const isOver = state === 'failed' || state === 'cancelled';
      if (isOver && (ids === undefined || ids.includes(id))) this.#set(id, this.#fresh(id));
    }
    this.#firstWaiting = 0;
    this.#begin();
  }

  /** Removes finished uploads from the list. */
  clear(): void {
    this.#items = this.#items.filter(isOpen);
    this.#indexes = new Map(this.#items.map(({ id }, index) => [id, index]));
    this.#firstWaiting = 0;
    this.#tell();
  }

  /** After sign-in: continues the uploads of this account; others stay hidden. */
  signedIn(account: number): void {
    if (this.#owner !== undefined && this.#owner !== account) {
      this.cancelAll();
      this.clear();
    }
    if (this.#halt === 'session') this.#goOn();
  }

  /** Checks repeatedly whether the cloud responds and the session is valid, until both are true. */
  readonly ask = async (): Promise<void> => {
    clearTimeout(this.#asking);
    if (this.#halt === undefined) return;
    try {
      this.signedIn((await cloud.getAccount({ api_key: false })).id);
      this.#goOn();
    } catch (error) {
      if (isSignedOut(error)) this.#waitForSession();
      else if (isLost(error)) this.#asking = setTimeout(this.ask, ASKED_EVERY_MS);
      else this.#goOn();
    }
  };

  /** Uses a new key: under the old one, the error would be replayed. */
  #fresh(id: number) {
    const key = `upload-${performance.timeOrigin}-${id}-${Math.random()}`;
    return { state: 'waiting', sentBytes: 0, error: null, key, losses: 0 } as const;
  }

  #begin(): void {
    while (
      this.#halt === undefined &&
      this.#sending.size < SENT_AT_ONCE &&
      this.#firstWaiting < this.#items.length
    ) {
      const item = this.#items[this.#firstWaiting++];
      if (item?.state === 'waiting') void this.#send(item);
    }
    this.#tell();
  }

  async #send(item: UploadItem): Promise<void> {
    const { id, file, bucket } = item;
    const controller = new AbortController();
    const { signal } = controller;
    this.#sending.set(id, controller);
    this.#set(id, { state: 'sending' });
    const onProgress = (sent: number) => {
      if (!signal.aborted) this.#set(id, { sentBytes: Math.min(sent, file.size) });
    };
    try {
      await this.#sendBytes(item, { signal, onProgress });
      this.#set(id, { state: 'done', sentBytes: file.size });
      this.#refreshLater(bucket);
    } catch (error) {
      const isThere = !isLost(error) || (await isReadable(file));
      if (!signal.aborted) this.#notSent(item, isThere ? error : new Error(text.uploads.unreadable));
    } finally {
      if (this.#sending.get(id) === controller) this.#sending.delete(id);
      this.#begin();
    }
  }

  async #sendBytes(
    { id, file, bucket, name, key: idempotencyKey, uploadId }: UploadItem,
    { signal, onProgress }: { readonly signal: AbortSignal; readonly onProgress: (sent: number) => void },
  ): Promise<void> {
    if (file.size < LARGE_BYTES && uploadId === undefined) {
      await cloud.uploadObject(bucket, { file, name }, { signal, onProgress, idempotencyKey });
      return;
    }
    await sendInParts(
      { file, bucket, name, uploadId },
      {
        signal,
        onProgress,
        onBegun: (begun) => {
          // Cancelled before it started: no request was sent.
          if (this.#item(id)?.state === 'cancelled') void cloud.abortUpload(bucket, begun).catch(() => {});
          else this.#set(id, { uploadId: begun });
        },
        onPart: () => this.#set(id, { losses: 0 }),
      },
    );
  }

  #notSent({ id, key, bucket, losses }: UploadItem, error: unknown): void {
    if (isSignedOut(error)) {
      this.#waitAgain(id, {});
      // The request may have been sent before the user signed in again.
      this.#halt = 'session';
      void this.ask();
    } else if (isLost(error) && losses + 1 < MOST_LOSSES) {
      this.#waitAgain(id, { losses: losses + 1 });
      this.#halt ??= 'connection';
      clearTimeout(this.#asking);
      this.#asking = setTimeout(this.ask, ASKED_EVERY_MS);
    } else if (isBusy(error)) {
      this.#set(id, { sentBytes: 0 });
      setTimeout(() => this.#sendLater(id, key), (error.retryAfterSeconds ?? 1) * 1000);
    } else {
      this.#set(id, { state: 'failed', sentBytes: 0, error });
      // The bucket may be gone.
      this.#refreshLater(bucket);
    }
  }

  /** Queues the item again unless it was cancelled in the meantime; a manual retry has another key. */
  #sendLater(id: number, key: string): void {
    const item = this.#item(id);
    if (item?.state !== 'sending' || item.key !== key) return;
    this.#waitAgain(id, {});
    this.#begin();
  }

  #waitAgain(id: number, change: Partial<UploadItem>): void {
    this.#set(id, { ...change, state: 'waiting', sentBytes: 0 });
    this.#firstWaiting = 0;
  }

  #waitForSession(): void {
    this.#halt = 'session';
    sessionEnded();
  }

  #goOn(): void {
    this.#halt = undefined;
    this.#begin();
  }

  #item(id: number): UploadItem | undefined {
    const index = this.#indexes.get(id);
    return index === undefined ? undefined : this.#items[index];
  }

  #set(id: number, change: Partial<UploadItem>): void {
    const index = this.#indexes.get(id);
    const item = index === undefined ? undefined : this.#items[index];
    if (index === undefined || item === undefined) return;
    this.#items[index] = { ...item, ...change };
    this.#tell();
  }

  #refreshLater(bucket: string): void {
    this.#changed.add(bucket);
    if (this.#changed.size > 1) return;
    setTimeout(
      () => {
        for (const name of this.#changed) void readAgain(['files', name]);
        void readAgain(['buckets']);
        this.#changed.clear();
      },
      this.#sending.size > 1 ? REFRESHED_EVERY_MS : 0,
    );
  }

  #tell(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.#shown = { items: [...this.#items], halt: this.#halt };
      for (const watcher of this.#watchers) watcher();
    }, TOLD_EVERY_MS);
  }
}

/** True while it is neither stored nor given up. */
export function isOpen({ state }: UploadItem): boolean {
  return state === 'waiting' || state === 'sending' || state === 'paused';
}

/** The connection broke, or a proxy lost its connection to the cloud. */
function isLost(error: unknown): boolean {
  if (!(error instanceof CloudError)) return false;
  const { code, status } = error;
  return code === 'no_answer' || code === 'shutting_down' || (code === 'not_understood' && status > 500);
}

/** The cloud is overloaded, or is still reading earlier bytes. */
function isBusy(error: unknown): error is CloudError {
  if (!(error instanceof CloudError)) return false;
  return error.status === 429 || error.code === 'overloaded' || error.code === 'idempotency_in_flight';
}

/** False for a file that was changed or removed since it was chosen: browsers then fail as if offline. */
async function isReadable(file: File): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

export const uploadQueue = new UploadQueue();

window.addEventListener('online', uploadQueue.ask);
window.addEventListener('beforeunload', (event) => {
  if (uploadQueue.snapshot().items.some(isOpen)) event.preventDefault();
});

/** A first read in progress would count as a new one, but may lack the change. */
async function readAgain(queryKey: readonly string[]): Promise<void> {
  await queryClient.cancelQueries({ queryKey });
  await queryClient.invalidateQueries({ queryKey });
}
