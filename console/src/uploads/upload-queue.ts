/**
 * Files on their way up, whatever page is shown. Three are sent at a time; those that fail stay here with
 * the reason until they are sent again or put away.
 */
import { CloudError } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { isSignedOut, queryClient, sessionEnded } from '../queries.ts';

type UploadState = 'waiting' | 'sending' | 'done' | 'failed';

export interface UploadItem {
  readonly id: number;
  readonly file: File;
  readonly bucket: string;
  /** Of the object. */
  readonly name: string;
  readonly state: UploadState;
  readonly sentBytes: number;
  readonly error: unknown;
}

export interface NewUpload {
  readonly file: File;
  readonly bucket: string;
  readonly name: string;
}

const SENT_AT_ONCE = 3;
/** How often watchers are told: bytes move faster than one can read. */
const TOLD_EVERY_MS = 150;
/** How often what the pages show is read again while files come in. */
const REFRESHED_EVERY_MS = 2000;

class UploadQueue {
  #items: UploadItem[] = [];
  #shown: readonly UploadItem[] = [];
  #nextId = 1;
  /** Place of each id in #items. */
  #places = new Map<number, number>();
  readonly #sending = new Map<number, AbortController>();
  readonly #watchers = new Set<() => void>();
  #telling: ReturnType<typeof setTimeout> | undefined;
  /** No waiting item stands before this place. */
  #firstWaiting = 0;
  /** Buckets that files were added to since the pages were refreshed. */
  readonly #changed = new Set<string>();

  /** For useSyncExternalStore. */
  readonly subscribe = (watcher: () => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };
  readonly snapshot = () => this.#shown;

  add(uploads: readonly NewUpload[]): void {
    for (const upload of uploads) {
      const id = this.#nextId++;
      this.#places.set(id, this.#items.length);
      this.#items.push({ ...upload, id, state: 'waiting', sentBytes: 0, error: null });
    }
    this.#begin();
  }

  cancel(id: number): void {
    this.#sending.get(id)?.abort();
    this.#keep((item) => item.id !== id);
    this.#begin();
  }

  cancelAll(): void {
    for (const controller of this.#sending.values()) controller.abort();
    this.#keep(({ state }) => state === 'done' || state === 'failed');
  }

  /** Sends what failed once more. */
  retry(ids?: readonly number[]): void {
    for (const { id, state } of this.#items) {
      if (state === 'failed' && (ids === undefined || ids.includes(id))) {
        this.#set(id, { state: 'waiting', sentBytes: 0, error: null });
      }
    }
    this.#firstWaiting = 0;
    this.#begin();
  }

  /** Puts away what is done or has failed. */
  clear(): void {
    this.#keep(({ state }) => state === 'waiting' || state === 'sending');
  }

  #begin(): void {
    while (this.#sending.size < SENT_AT_ONCE && this.#firstWaiting < this.#items.length) {
      const item = this.#items[this.#firstWaiting++];
      if (item?.state === 'waiting') void this.#send(item);
    }
    this.#tell();
  }

  async #send({ id, file, bucket, name }: UploadItem): Promise<void> {
    const controller = new AbortController();
    this.#sending.set(id, controller);
    this.#set(id, { state: 'sending' });
    const onProgress = (sent: number) => this.#set(id, { sentBytes: Math.min(sent, file.size) });
    try {
      await cloud.objects.upload(bucket, { file, name }, { signal: controller.signal, onProgress });
      this.#set(id, { state: 'done', sentBytes: file.size });
      this.#refreshLater(bucket);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#set(id, { state: 'failed', error });
      if (isSignedOut(error)) sessionEnded();
      if (isBusy(error)) setTimeout(() => this.retry([id]), (error.retryAfterSeconds ?? 1) * 1000);
    } finally {
      this.#sending.delete(id);
      this.#begin();
    }
  }

  #set(id: number, change: Partial<UploadItem>): void {
    const place = this.#places.get(id);
    const item = place === undefined ? undefined : this.#items[place];
    if (place === undefined || item === undefined) return;
    this.#items[place] = { ...item, ...change };
    this.#tell();
  }

  #keep(isKept: (item: UploadItem) => boolean): void {
    this.#items = this.#items.filter(isKept);
    this.#places = new Map(this.#items.map(({ id }, place) => [id, place]));
    this.#firstWaiting = 0;
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
      this.#shown = [...this.#items];
      for (const watcher of this.#watchers) watcher();
    }, TOLD_EVERY_MS);
  }
}

/** The cloud has too much to do at this moment, and takes it later. */
function isBusy(error: unknown): error is CloudError {
  return error instanceof CloudError && (error.status === 429 || error.code === 'overloaded');
}

export const uploadQueue = new UploadQueue();

window.addEventListener('beforeunload', (event) => {
  const isBusy = uploadQueue.snapshot().some(({ state }) => state === 'waiting' || state === 'sending');
  if (isBusy) event.preventDefault();
});

/** A first reading that is under way would be taken for a new one, though it may lack the file. */
async function readAgain(queryKey: readonly string[]): Promise<void> {
  await queryClient.cancelQueries({ queryKey });
  await queryClient.invalidateQueries({ queryKey });
}
