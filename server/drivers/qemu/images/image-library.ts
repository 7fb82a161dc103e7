import * as fs from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ImageStage, ImportedImage, ImportOptions } from '../../../compute/hypervisor.ts';
import type { Clock } from '../../../platform/clock.ts';
import { AppError } from '../../../platform/errors.ts';
import { syncFolderAsync } from '../../../platform/files.ts';
import { isId } from '../../../platform/ids.ts';
import { removeTree } from '../../host-process/foreign-files.ts';
import type { ForeignProgram } from '../../host-process/foreign-program.ts';
import { HostProcesses } from '../../host-process/host-processes.ts';
import { endProcessesOf } from '../../host-process/process-identity.ts';
import { noQemuImg } from '../program.ts';
import { asDiskError } from './disk.ts';
import { HEADER_BYTES, ImageRefused, type RecognizedImage, recognizeImage } from './image-header.ts';

export interface ImageLibraryDeps {
  readonly directory: string;
  readonly clock: Clock;
  /** User id under which images are converted, used for nothing else; null: ours. */
  readonly uid: number | null;
  /** Path of `qemu-img`, or null. */
  readonly program: () => Promise<string | null>;
  readonly limits?: Partial<ConversionLimits>;
}

interface ConversionLimits {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  readonly totalMs: number;
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const LIMITS: ConversionLimits = { memoryBytes: 2 * GIB, cpuSeconds: 3600, totalMs: 2 * 3_600_000 };
/** Tables and counters of the new file, besides the disk itself. */
const TABLES_BYTES = GIB;
const CGROUP = 'cloudlet-images';
const STAGE = '.import-';
const SOURCE = 'source';
const RESULT = 'disk.qcow2';
const MAX_WORDS_BYTES = 4096;
/** For killed processes; one that hangs in the kernel takes longer. */
const END_MS = 3000;

export class ImageLibrary {
  readonly #deps: ImageLibraryDeps;
  readonly #limits: ConversionLimits;
  readonly #processes: HostProcesses;

  constructor(deps: ImageLibraryDeps) {
    this.#deps = deps;
    this.#limits = { ...LIMITS, ...deps.limits };
    const { clock, uid } = deps;
    this.#processes = new HostProcesses({ clock, group: CGROUP, hasUsers: uid !== null });
  }

  #path(imageId: string, prefix = '', suffix = ''): string {
    if (!isId('img', imageId)) throw new Error('not the id of an image');
    return join(this.#deps.directory, `${prefix}${imageId}${suffix}`);
  }

  /**
   * Throws `engine_unavailable`: better before the bytes arrive than after. Bytes that a converter could have
   * written to are not resumed.
   */
  async stage(imageId: string, { resume } = { resume: false }): Promise<ImageStage> {
    await this.#programOrThrow();
    const folder = this.#path(imageId, STAGE);
    const source = join(folder, SOURCE);
    if (resume && isOurs(folder) && isOurs(source)) return new StagedFile(await open(source, 'r+'));
    fs.mkdirSync(this.#deps.directory, { recursive: true, mode: 0o700 });
    await this.#removeStage(imageId);
    fs.mkdirSync(folder, { mode: 0o700 });
    return new StagedFile(await open(source, 'wx+', 0o600));
  }

  async import(imageId: string, options: ImportOptions): Promise<ImportedImage> {
    const folder = this.#path(imageId, STAGE);
    try {
      const found = recognized(join(folder, SOURCE), options.maxVirtualBytes, null);
      await this.#convert(folder, found, options.signal);
      const sizeBytes = await this.#keep(imageId, folder, found);
      return { format: found.format, virtualBytes: found.virtualBytes, sizeBytes };
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof ImageRefused) {
        throw new AppError('invalid_request', `The image is refused: ${error.message}`);
      }
      throw asDiskError(error);
    } finally {
      await this.#removeStage(imageId);
    }
  }

  /** Removes the other user's folder, or the rest of it. */
  async #removeStage(imageId: string): Promise<void> {
    const folder = basename(this.#path(imageId, STAGE));
    for (const name of this.#names().filter((one) => one.startsWith(folder)))
      await removeTree(join(this.#deps.directory, name));
  }

  async #programOrThrow(): Promise<string> {
    const program = await this.#deps.program();
    if (program !== null) return program;
    throw noQemuImg();
  }

  async #convert(folder: string, { format, virtualBytes }: RecognizedImage, signal: AbortSignal) {
    const program = await this.#programOrThrow();
    const { uid } = this.#deps;
    const { memoryBytes, cpuSeconds, totalMs } = this.#limits;
    if (uid !== null) {
      await clear(uid);
      fs.chownSync(join(folder, SOURCE), uid, uid);
      fs.chownSync(folder, uid, uid);
    }
    const fileMb = Math.ceil((virtualBytes + TABLES_BYTES) / MIB);
    const convert: ForeignProgram = {
      name: 'image-conversion',
      command: program,
      args: ['convert', '-q', '-f', format, '-O', 'qcow2', SOURCE, RESULT],
      uid,
      folder,
      readOnly: [programFolder(program)],
      network: 'none',
      memoryMb: memoryBytes / MIB,
      cpuSeconds,
      fileMb,
    };
    try {
      await this.#run(convert, AbortSignal.any([signal, AbortSignal.timeout(totalMs)]));
    } finally {
      // Ends all of its processes, so that nobody writes to the result any more, and only we
      // control the names in the folder.
      if (uid !== null) await clear(uid);
      if (uid !== null) fs.chownSync(folder, 0, 0);
    }
  }

  /** Rejects with ImageRefused if the program fails or exceeds a limit. */
  async #run(program: ForeignProgram, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const running = await this.#processes.start(program, { stdio: ['ignore', 'ignore', 'pipe'] });
    const kill = () => void running.end({ graceMs: 0 }).catch(() => {});
    signal.addEventListener('abort', kill, { once: true });
    let words = '';
    running.child?.stderr?.setEncoding('utf8').on('data', (text: string) => {
      words = (words + text).slice(0, MAX_WORDS_BYTES);
    });
    if (signal.aborted) kill();
    const { code, signal: killed } = await running.ended;
    signal.removeEventListener('abort', kill);
    if (signal.aborted) throw tookTooLong();
    if (code === 0) return;
    if (/No space left|quota/i.test(words)) throw Object.assign(new Error(words), { code: 'ENOSPC' });
    throw new ImageRefused(
      killed === null ? lastWords(words) : `its conversion exceeded a limit (${killed})`,
    );
  }

  /** Moves the result to the image library, trusting nothing in the other user's folder. */
  async #keep(imageId: string, folder: string, found: RecognizedImage): Promise<number> {
    const result = join(folder, RESULT);
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
    const file = await open(result, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { uid } = this.#deps;
      const stat = await file.stat();
      const isItsOwn = uid === null || stat.uid === uid;
      if (!stat.isFile() || stat.nlink !== 1 || !isItsOwn)
        throw new Error('the result is not a regular file, is linked elsewhere, or belongs to another user');
      recognized(result, found.virtualBytes, 'qcow2');
      if (uid !== null) await file.chown(0, 0);
      await file.chmod(0o444);
      await file.sync();
      await rename(result, this.#path(imageId, '', '.qcow2'));
      await syncFolderAsync(this.#deps.directory);
      return stat.size;
    } finally {
      await file.close();
    }
  }

  async discard(imageId: string): Promise<void> {
    await this.#removeStage(imageId);
    await rm(this.#path(imageId, '', '.qcow2'), { force: true });
  }

  #names(): string[] {
    return fs.existsSync(this.#deps.directory) ? fs.readdirSync(this.#deps.directory) : [];
  }

  /** Ids of stored and staged images. */
  list(): string[] {
    const ids = this.#names().map((name) => name.replace(STAGE, '').replace(/\..*$/, ''));
    return [...new Set(ids.filter((id) => isId('img', id)))];
  }
}

const PIECE_BYTES = 256 * 1024;

/** A file or folder that only this process and its successors write to. */
function isOurs(path: string): boolean {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && !stat.isSymbolicLink() && stat.uid === process.getuid?.();
}

/** Bytes of an image as they arrive. */
class StagedFile implements ImageStage {
  readonly #file: FileHandle;
  #end = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async *kept(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const { bytesRead, buffer } = await this.#file.read(
        Buffer.alloc(PIECE_BYTES),
        0,
        PIECE_BYTES,
        this.#end,
      );
      if (bytesRead === 0) return;
      this.#end += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#end);
        at += bytesWritten;
        this.#end += bytesWritten;
      }
    } catch (error) {
      throw asDiskError(error);
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Reads the header. Throws ImageRefused, also if its format is not `must`. */
function recognized(path: string, maxVirtualBytes: number, must: 'qcow2' | null): RecognizedImage {
  const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    const head = Buffer.alloc(HEADER_BYTES);
    const length = fs.readSync(fd, head, 0, head.length, 0);
    const found = recognizeImage(head.subarray(0, length), fs.fstatSync(fd).size, maxVirtualBytes);
    if (must !== null && found.format !== must) throw new ImageRefused('it cannot be converted');
    return found;
  } finally {
    fs.closeSync(fd);
  }
}

async function clear(uid: number): Promise<void> {
  if (!(await endProcessesOf(uid, END_MS))) throw new Error('a conversion does not end');
}

function tookTooLong(): ImageRefused {
  return new ImageRefused('its conversion took too long');
}

/** The last line, without paths. */
function lastWords(words: string): string {
  const line = words.trim().split('\n').at(-1) ?? '';
  const plain = line
    .replace(/^qemu-img: /, '')
    .replace(/\S*\/\S*/g, '…')
    .slice(0, 300);
  return plain === '' ? 'it cannot be converted' : `it cannot be converted: ${plain}`;
}

/** Folder of a program outside the system's folders, which needs the libraries there. */
function programFolder(program: string): string {
  const folder = dirname(fs.realpathSync(program));
  return basename(folder) === 'bin' ? dirname(folder) : program;
}
