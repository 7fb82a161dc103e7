/**
 * Imports images. An import outlives its request: its row is `importing`, then `ready` or `failed`,
 * and only ready images are used. A few downloads run at once; files of this host are copied one at
 * a time, and the engine imports one image at a time, so that a slow source delays no others. The
 * queue is in memory; an import that is unfinished when Cloudlet stops has failed.
 */
import { createHash } from 'node:crypto';
import { BACKGROUND, type Changes, type Recorder } from '../../metadata/change.ts';
import { CommitOutcomeUnknown } from '../../metadata/metadata.ts';
import type { SweepGuard } from '../../platform/background/sweep-guard.ts';
import type { Clock } from '../../platform/clock.ts';
import { Semaphore } from '../../platform/concurrency.ts';
import { AppError, invalidField, isAppError } from '../../platform/errors.ts';
import { isId, newId } from '../../platform/ids.ts';
import { OutboundRefused } from '../../platform/outbound.ts';
import type { Hypervisor, ImageStage } from '../hypervisor.ts';
import { vmNameProblem } from '../machines/vm-fields.ts';
import type { AdminImage, DeletedImage, NewImage } from '../schema.ts';
import type { ImageSource, ImageSources } from './image-sources.ts';
import type { FoundImage, ImageRow, ImageStore } from './image-store.ts';
import { DEFAULT_IMAGE, imageNotFound, presentForAdmin } from './images.ts';

interface ImageImportsDeps {
  readonly changes: Changes;
  readonly store: ImageStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly sources: ImageSources;
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
  #isClosed = false;

  constructor(deps: ImageImportsDeps) {
    this.#deps = deps;
  }

  /**
   * Imports from a path or a URL; resolves once the row is stored. Throws `invalid_request`, `shutting_down`,
   * and `payload_too_large` for a file of this host; later errors are stored in the row.
   */
  async add(call: Recorder, input: NewImage): Promise<AdminImage> {
    const name = checkedName(input.name);
    const source = await this.#sourceOf(input);
    assertSize(source.bytes ?? 0, this.#deps.maxBytes);
    const turns = source.bytes === null ? this.#downloads : this.#copies;
    const row = this.#newRow({ name, source: source.label, sha256: null });
    this.#active.add(row.image_id);
    return this.#begin(call, row, async (signal) => {
      const sha256 = await turns.run(signal, () => this.#copy(row.image_id, source, signal));
      assertSum(sha256, input.sha256);
      return sha256;
    });
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
    return stage.sha256();
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
    const sha256 = stage.sha256();
    assertSum(sha256, input.sha256);
    const row = this.#newRow({ name, source: 'upload', sha256 }, stage.imageId);
    return this.#begin(call, row, async () => sha256);
  }

  async abortUpload(stage: Staging): Promise<void> {
    await stage.close();
    await this.#deps.hypervisor.discardImage(stage.imageId);
    this.#active.delete(stage.imageId);
  }

  #newRow(about: Pick<ImageRow, 'name' | 'source' | 'sha256'>, imageId?: string): ImageRow {
    const { clock } = this.#deps;
    return {
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
    const imageId = row.image_id;
    const response = presentForAdmin(row);
    try {
      this.#assertOpen();
      await changes.run(call, (change) => {
        change.add(store.insert(row));
        return response;
      });
    } catch (error) {
      this.#active.delete(imageId);
      throw error;
    }
    const one: Import = { controller: new AbortController(), done: Promise.resolve() };
    if (this.#isClosed) one.controller.abort(stopped());
    this.#imports.set(imageId, one);
    one.done = this.#run(imageId, one.controller, fill);
    return response;
  }

  /** Never rejects. */
  async #run(imageId: string, controller: AbortController, fill: Fill): Promise<void> {
    const { changes, store, hypervisor, onError } = this.#deps;
    const { signal } = controller;
    try {
      signal.throwIfAborted();
      const sha256 = await fill(signal);
      const found = await this.#conversions.run(signal, () => this.#takeIn(imageId, controller, sha256));
      await changes.run(BACKGROUND, (change) => change.add(store.finish(imageId, found)));
    } catch (error) {
      // The image may be ready anyway; the next start of Cloudlet checks.
      if (error instanceof CommitOutcomeUnknown) return;
      const { code, message } = failure(error);
      if (code === 'internal_error') onError(imageId, 'image import failed', error);
      try {
        await changes.run(BACKGROUND, (change) => change.add(store.fail(imageId, code, message)));
        await hypervisor.discardImage(imageId);
      } catch (failed) {
        onError(imageId, 'removing an incomplete import failed', failed);
      }
    } finally {
      this.#imports.delete(imageId);
      this.#active.delete(imageId);
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

  /** Cleans up after the last run. */
  async start(): Promise<void> {
    const { changes, store, hypervisor, sweepGuard } = this.#deps;
    const present = await hypervisor.listImages();
    const rows = await store.list();
    const unfinished = rows.filter((row) => row.state === 'importing' && !this.#active.has(row.image_id));
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

  /** Cancels the imports in progress, which then have failed. */
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

interface StagingDeps {
  /** Throws `out_of_space` or `read_only` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Largest source, bytes. */
  readonly maxBytes: number;
}

const GIB = 2 ** 30;

/** Throws `payload_too_large`. */
function assertSize(bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw new AppError('payload_too_large', `An image can have at most ${Math.floor(maxBytes / GIB)} GiB`);
}

/** Counts and hashes the staged bytes and enforces the limit. */
class Staging {
  readonly imageId: string;
  readonly #stage: ImageStage;
  readonly #deps: StagingDeps;
  readonly #hash = createHash('sha256');
  #digest: string | null = null;
  #isClosed = false;
  bytes = 0;

  constructor(imageId: string, stage: ImageStage, deps: StagingDeps) {
    this.imageId = imageId;
    this.#stage = stage;
    this.#deps = deps;
  }

  /** The bytes are copied before the call returns. */
  write(piece: Uint8Array): Promise<void> {
    return this.#write(Buffer.from(piece));
  }

  async #write(piece: Buffer): Promise<void> {
    const { maxBytes, assertSpace } = this.#deps;
    this.bytes += piece.length;
    assertSize(this.bytes, maxBytes);
    assertSpace(piece.length);
    this.#hash.update(piece);
    await this.#stage.write(piece);
  }

  /** SHA-256 of everything written; nothing may be written afterwards. */
  sha256(): string {
    this.#digest ??= this.#hash.digest('hex');
    return this.#digest;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#stage.close();
  }
}
