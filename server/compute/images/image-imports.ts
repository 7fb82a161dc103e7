/**
 * Imports images. An import outlives its request: its row is `importing`, then `ready` or `failed`,
 * and only ready images are used. A few downloads run at once; files of this host are copied one at
 * a time, and the engine imports one image at a time, so that a slow source delays no others. The
 * queue is in memory; an import that is unfinished when Cloudlet stops has failed.
 */
import { BACKGROUND, type Changes, type Recorder } from '../../metadata/change.ts';
import { CommitOutcomeUnknown } from '../../metadata/metadata.ts';
import type { SweepGuard } from '../../platform/background/sweep-guard.ts';
import type { Clock } from '../../platform/clock.ts';
import { Semaphore } from '../../platform/concurrency.ts';
import { AppError, invalidField, isAppError } from '../../platform/errors.ts';
import { isId, newId } from '../../platform/ids.ts';
import { OutboundRefused } from '../../platform/outbound.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { vmNameProblem } from '../machines/vm-fields.ts';
import type { AdminImage, DeletedImage, NewImage } from '../schema.ts';
import type { ImageSource, ImageSources } from './image-sources.ts';
import { assertImageSize, Staging } from './image-staging.ts';
import type { FoundImage, ImageRow, ImageStore } from './image-store.ts';
import { DEFAULT_IMAGE, imageNotFound, presentForAdmin } from './images.ts';
import { type KnownImageAddresses, KnownImageFetch } from './known-image-fetch.ts';
import { KNOWN_IMAGES, type KnownImage } from './known-images.ts';

interface ImageImportsDeps {
  readonly changes: Changes;
  readonly store: ImageStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly sources: ImageSources;
  readonly addresses: KnownImageAddresses;
  readonly sweepGuard: SweepGuard;
  /** Throws `out_of_space` or `read_only` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Largest source and largest virtual disk, bytes. */
  readonly maxBytes: number;
  readonly onError: (imageId: string, what: string, error: unknown) => void;
}

interface Import {
  readonly controller: AbortController;
  done: Promise<void>;
}

/** Stages the bytes, queued per kind of source, and returns their SHA-256. */
type Fill = (signal: AbortSignal) => Promise<string>;

const DOWNLOADS = 4;
const SPACE_CHECK_MS = 1000;
const STOPPED = 'Cloudlet was stopped before the image was ready; add it again';

export class ImageImports {
  readonly #deps: ImageImportsDeps;
  /** Images with bytes and perhaps no row yet; excluded from sweeps. */
  readonly #active = new Set<string>();
  readonly #imports = new Map<string, Import>();
  readonly #downloads = new Semaphore(DOWNLOADS);
  readonly #copies = new Semaphore(1);
  readonly #conversions = new Semaphore(1);
  readonly #fetches = new Semaphore(1);
  /** Known images that are being downloaded, by name. */
  readonly #fetched = new Map<string, string>();
  readonly #known: KnownImageFetch;
  #isClosed = false;

  constructor(deps: ImageImportsDeps) {
    this.#deps = deps;
    const { changes, store } = deps;
    const onProgress = async (imageId: string, fetched: number, total: number) => {
      await changes.run(BACKGROUND, (change) => change.add(store.progress(imageId, fetched, total)));
    };
    this.#known = new KnownImageFetch({ ...deps, onProgress });
  }

  /**
   * Imports from a path or a URL; resolves once the row is stored. Throws `invalid_request`, `shutting_down`,
   * and `payload_too_large` for a file of this host; later errors are stored in the row.
   */
  async add(call: Recorder, input: NewImage): Promise<AdminImage> {
    const name = checkedName(input.name);
    const source = await this.#sourceOf(input);
    assertImageSize(source.bytes ?? 0, this.#deps.maxBytes);
    const turns = source.bytes === null ? this.#downloads : this.#copies;
    const row = this.#newRow({ name, source: source.label, sha256: null });
    this.#active.add(row.image_id);
    return this.#begin(call, row, async (signal) => {
      const sha256 = await turns.run(signal, () => this.#copy(row.image_id, source, signal));
      assertSum(sha256, input.sha256);
      return sha256;
    });
  }

  /**
   * Downloads a known image, one at a time; resolves once the row is stored. Throws
   * `image_not_found`, `image_not_ready` while the same one is being downloaded, `invalid_request` if
   * downloads by name are off, `shutting_down`; later errors are stored in the row.
   */
  async fetch(call: Recorder, shortName: string): Promise<AdminImage> {
    const { addresses } = this.#deps;
    const known = KNOWN_IMAGES.get(shortName);
    if (known === undefined) throw notKnown(shortName);
    addresses.assertOn();
    if (this.#fetched.has(shortName)) throw fetchedAlready(shortName);
    const source = `url ${addresses.of(known.url)}`;
    const row = this.#newRow({ name: known.title, source, sha256: null, short_name: shortName });
    this.#active.add(row.image_id);
    this.#fetched.set(shortName, row.image_id);
    return this.#begin(call, row, this.#fetchOf(row.image_id, known));
  }

  #fetchOf(imageId: string, known: KnownImage): Fill {
    return (signal) => this.#fetches.run(signal, () => this.#known.run(imageId, known, signal));
  }

  async #copy(imageId: string, source: ImageSource, signal: AbortSignal): Promise<string> {
    const stage = new Staging(imageId, await this.#deps.hypervisor.stageImage(imageId), this.#deps);
    try {
      for await (const piece of source.open(signal)) {
        signal.throwIfAborted();
        await stage.write(piece);
      }
    } finally {
      await stage.close();
    }
    return stage.sum('sha256');
  }

  async #sourceOf({ path, url }: NewImage): Promise<ImageSource> {
    const { sources } = this.#deps;
    if (path !== undefined && url === undefined) return sources.fromPath(path);
    if (url !== undefined && path === undefined) return sources.fromUrl(url);
    throw invalidField('path', 'exactly one of path and url is required');
  }

  /** Stages an upload. Always followed by finishUpload or abortUpload. */
  async beginUpload(): Promise<Staging> {
    this.#assertOpen();
    const { hypervisor, clock } = this.#deps;
    const imageId = newId('img', clock);
    this.#active.add(imageId);
    try {
      return new Staging(imageId, await hypervisor.stageImage(imageId), this.#deps);
    } catch (error) {
      this.#active.delete(imageId);
      throw error;
    }
  }

  /** Ends an upload; the import continues after the response. Call abortUpload when this throws. */
  async finishUpload(
    call: Recorder,
    stage: Staging,
    input: { readonly name: string; readonly sha256: string | undefined },
  ): Promise<AdminImage> {
    const name = checkedName(input.name);
    if (stage.bytes === 0) throw invalidField('file', 'is missing or empty');
    await stage.close();
    const sha256 = stage.sum('sha256');
    assertSum(sha256, input.sha256);
    const row = this.#newRow({ name, source: 'upload', sha256 }, stage.imageId);
    return this.#begin(call, row, async () => sha256);
  }

  async abortUpload(stage: Staging): Promise<void> {
    await stage.close();
    await this.#deps.hypervisor.discardImage(stage.imageId);
    this.#active.delete(stage.imageId);
  }

  #newRow(
    about: Pick<ImageRow, 'name' | 'source' | 'sha256'> & { readonly short_name?: string },
    imageId?: string,
  ): ImageRow {
    const { clock } = this.#deps;
    return {
      short_name: null,
      fetched_bytes: 0,
      total_bytes: null,
      ...about,
      image_id: imageId ?? newId('img', clock),
      state: 'importing',
      reason_code: null,
      reason_message: null,
      source_format: null,
      size_bytes: 0,
      virtual_bytes: 0,
      created_at: clock.now(),
    };
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new AppError('shutting_down', 'Cloudlet is being stopped');
  }

  /** Stores the row and starts the import. */
  async #begin(call: Recorder, row: ImageRow, fill: Fill): Promise<AdminImage> {
    const { changes, store } = this.#deps;
    const response = presentForAdmin(row);
    try {
      this.#assertOpen();
      await changes.run(call, (change) => {
        if (row.short_name !== null) change.add(store.deleteFailed(row.short_name));
        change.add(store.insert(row));
        return response;
      });
    } catch (error) {
      this.#forget(row);
      throw error;
    }
    this.#launch(row, fill);
    return response;
  }

  #launch(row: ImageRow, fill: Fill): void {
    const one: Import = { controller: new AbortController(), done: Promise.resolve() };
    if (this.#isClosed) one.controller.abort(stopped());
    this.#imports.set(row.image_id, one);
    one.done = this.#run(row, one.controller, fill);
  }

  #forget(row: ImageRow): void {
    this.#imports.delete(row.image_id);
    this.#active.delete(row.image_id);
    this.#free(row);
  }

  /** Runs before the row says that it ended: after that, the same image may be downloaded again. */
  #free({ image_id, short_name }: ImageRow): void {
    if (short_name !== null && this.#fetched.get(short_name) === image_id) this.#fetched.delete(short_name);
  }

  /** Never rejects. */
  async #run(row: ImageRow, controller: AbortController, fill: Fill): Promise<void> {
    const { image_id: imageId } = row;
    const { changes, store, hypervisor, onError } = this.#deps;
    const { signal } = controller;
    try {
      signal.throwIfAborted();
      const sha256 = await fill(signal);
      const found = await this.#conversions.run(signal, () => this.#takeIn(imageId, controller, sha256));
      this.#free(row);
      await changes.run(BACKGROUND, (change) => change.add(store.finish(imageId, found)));
    } catch (error) {
      // The image may be ready anyway; the next start of Cloudlet checks.
      if (error instanceof CommitOutcomeUnknown) return;
      // The next start continues it.
      if (this.#isClosed && row.short_name !== null) return;
      const { code, message } = failure(error);
      if (code === 'internal_error') onError(imageId, 'image import failed', error);
      this.#free(row);
      try {
        await changes.run(BACKGROUND, (change) => change.add(store.fail(imageId, code, message)));
        await hypervisor.discardImage(imageId);
      } catch (failed) {
        onError(imageId, 'removing an incomplete import failed', failed);
      }
    } finally {
      this.#forget(row);
    }
  }

  /** Aborts when the disk runs full: the size of the result is unknown in advance. */
  async #takeIn(imageId: string, controller: AbortController, sha256: string): Promise<FoundImage> {
    const { hypervisor, assertSpace, maxBytes } = this.#deps;
    const timer = setInterval(() => {
      try {
        assertSpace(1);
      } catch (error) {
        controller.abort(error);
      }
    }, SPACE_CHECK_MS).unref();
    try {
      const options = { maxVirtualBytes: maxBytes, signal: controller.signal };
      const { format, virtualBytes, sizeBytes } = await hypervisor.importImage(imageId, options);
      return { size_bytes: sizeBytes, virtual_bytes: virtualBytes, source_format: format, sha256 };
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * Cancels an import in progress. Throws `image_not_found`, and `image_in_use` while a machine uses the
   * image.
   */
  async delete(call: Recorder, imageId: string): Promise<DeletedImage> {
    const { changes, store, hypervisor } = this.#deps;
    if (imageId === DEFAULT_IMAGE) throw new AppError('image_in_use', 'A built-in image cannot be deleted');
    if (!isId('img', imageId) || (await store.find(imageId)) === undefined) throw imageNotFound();
    const one = this.#imports.get(imageId);
    one?.controller.abort(new AppError('image_not_found', 'The image was deleted'));
    await one?.done;
    const refused = async () => ((await store.isUsed(imageId)) ? imageInUse() : imageNotFound());
    const response = await changes.run(call, (change) => {
      change.expect(store.delete(imageId), refused);
      return { image_id: imageId, deleted: true as const };
    });
    // A crash before this leaves files that the next start removes.
    await hypervisor.discardImage(imageId);
    return response;
  }

  /** Cleans up after the last run, and continues its downloads of known images. */
  async start(): Promise<void> {
    const { changes, store, hypervisor, sweepGuard } = this.#deps;
    const present = await hypervisor.listImages();
    const rows = await store.list();
    const left = rows.filter((row) => row.state === 'importing' && !this.#active.has(row.image_id));
    const unfinished = left.filter((row) => !this.#resume(row));
    const { code, message } = stopped();
    if (unfinished.length > 0) {
      await changes.run(BACKGROUND, (change) =>
        change.addAll(unfinished.map((row) => store.fail(row.image_id, code, message))),
      );
    }
    const ready = new Set(rows.filter(({ state }) => state === 'ready').map((row) => row.image_id));
    const unnamed = present.filter((imageId) => !ready.has(imageId) && !this.#active.has(imageId));
    const sweep = { folder: 'images', what: 'images', found: present.length, unnamed: unnamed.length };
    if (!(await sweepGuard.allows(sweep))) return;
    for (const imageId of unnamed) await hypervisor.discardImage(imageId);
  }

  /** False for an import that cannot continue. */
  #resume(row: ImageRow): boolean {
    const { image_id: imageId, short_name: name } = row;
    const known = name === null ? undefined : KNOWN_IMAGES.get(name);
    if (name === null || known === undefined || this.#fetched.has(name)) return false;
    this.#active.add(imageId);
    this.#fetched.set(name, imageId);
    this.#launch(row, this.#fetchOf(imageId, known));
    return true;
  }

  /** Cancels the imports in progress: downloads of known images continue at the next start, others fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { controller } of this.#imports.values()) controller.abort(stopped());
    await Promise.all([...this.#imports.values()].map(({ done }) => done));
  }
}

function checkedName(text: string): string {
  const name = text.trim();
  const problem = vmNameProblem(name);
  if (problem !== undefined) throw invalidField('name', problem);
  return name;
}

function assertSum(found: string, wanted: string | undefined): void {
  if (wanted === undefined || wanted.toLowerCase() === found) return;
  throw invalidField('sha256', `does not match the SHA-256 of the data, ${found}`);
}

function notKnown(shortName: string): AppError {
  return new AppError('image_not_found', `There is no image ${shortName} in the list`, {
    hint: `The list has ${[...KNOWN_IMAGES.keys()].join(', ')}`,
  });
}

function fetchedAlready(shortName: string): AppError {
  return new AppError('image_not_ready', `${shortName} is being downloaded already`, {
    extra: { state: 'importing' },
  });
}

function imageInUse(): AppError {
  return new AppError('image_in_use', 'The image is used by virtual machines', {
    hint: 'Delete these virtual machines first',
  });
}

function stopped(): AppError {
  return new AppError('shutting_down', STOPPED);
}

/** The error as stored in the row. */
function failure(error: unknown): { code: string; message: string } {
  if (error instanceof OutboundRefused) return { code: `source_${error.kind}`, message: error.message };
  if (isAppError(error)) return { code: error.code, message: error.message };
  return { code: 'internal_error', message: 'Internal error; the operator finds details in the log' };
}
