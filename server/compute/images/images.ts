/** Images that a machine's disk can be created from. Imports are in image-imports.ts. */
import type { Change } from '../../metadata/change.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { AdminImage, Image, KnownImageEntry } from '../schema.ts';
import type { ImageRow, ImageStore } from './image-store.ts';
import type { KnownImageAddresses } from './known-image-fetch.ts';
import { KNOWN_IMAGES, type KnownImage } from './known-images.ts';

export const DEFAULT_IMAGE = 'tiny';
const GIB = 2 ** 30;

const TINY: Image = {
  image_id: DEFAULT_IMAGE,
  name: 'Tiny Linux',
  short_name: DEFAULT_IMAGE,
  login_user: 'root',
  cloud_init: false,
  is_builtin: true,
  size: null,
  min_disk_gb: 1,
  created_at: null,
};

export class Images {
  readonly #store: ImageStore;
  readonly #addresses: KnownImageAddresses;

  constructor(deps: { readonly store: ImageStore; readonly addresses: KnownImageAddresses }) {
    this.#store = deps.store;
    this.#addresses = deps.addresses;
  }

  /** Images that are ready, built-in ones first. A short name means the newest image with it. */
  async list(): Promise<Image[]> {
    const rows = (await this.#store.list()).filter(({ state }) => state === 'ready');
    const newest = new Map(rows.map(({ short_name, image_id }) => [short_name, image_id]));
    const images = rows.map((row) => {
      const image = presentImage(row);
      return newest.get(row.short_name) === row.image_id ? image : { ...image, short_name: null };
    });
    return [TINY, ...images];
  }

  /** The known images, each with its latest download. */
  async listKnown(): Promise<KnownImageEntry[]> {
    const rows = await this.#store.list();
    return [...KNOWN_IMAGES].map(([shortName, known]) => {
      const row = rows.findLast(({ short_name }) => short_name === shortName);
      const url = this.#addresses.of(known.url);
      return presentKnown(shortName, { ...known, url }, row);
    });
  }

  /** Imported images in any state, oldest first. */
  async listAll(): Promise<AdminImage[]> {
    return (await this.#store.list()).map(presentForAdmin);
  }

  /** Finds an image that is ready, by id or short name. Throws `image_not_found`, `image_not_ready`. */
  async find(image: string): Promise<Image> {
    if (image === DEFAULT_IMAGE) return TINY;
    const row = await this.#store.find(image);
    if (row === undefined) throw KNOWN_IMAGES.has(image) ? notFetched(image) : imageNotFound();
    if (row.state === 'ready') return presentImage(row);
    const what = row.state === 'failed' ? 'could not be imported' : 'is still being imported';
    throw new AppError('image_not_ready', `The image ${what}`, { extra: { state: row.state } });
  }

  /** Part of the commit that creates a machine from the image, so that the image is not deleted meanwhile. */
  claim(change: Change, imageId: string): void {
    if (imageId !== DEFAULT_IMAGE) change.expect(this.#store.claim(imageId), imageNotFound);
  }
}

export function imageNotFound(): AppError {
  return new AppError('image_not_found', 'There is no such image', { hint: 'GET /api/images lists them' });
}

function notFetched(shortName: string): AppError {
  return new AppError('image_not_found', `The image ${shortName} has not been downloaded yet`, {
    hint: `An administrator can download it: cloudlet image fetch ${shortName}, or "Images" in the console`,
  });
}

function presentKnown(shortName: string, known: KnownImage, row: ImageRow | undefined): KnownImageEntry {
  const { title, version, architecture, url, algorithm, sum, aboutBytes, loginUser, hasCloudInit } = known;
  return {
    short_name: shortName,
    title,
    version,
    architecture,
    url,
    checked_by: 'pinned' in sum ? `the ${algorithm.toUpperCase()} in this list` : sum.url,
    about_bytes: aboutBytes,
    login_user: loginUser,
    cloud_init: hasCloudInit,
    image: row === undefined ? null : presentForAdmin(row),
  };
}

function presentImage(row: ImageRow): Image {
  const known = KNOWN_IMAGES.get(row.short_name ?? '');
  return {
    image_id: row.image_id,
    name: row.name,
    short_name: row.short_name,
    login_user: known?.loginUser ?? null,
    cloud_init: known?.hasCloudInit ?? null,
    is_builtin: false,
    size: row.size_bytes,
    min_disk_gb: Math.max(1, Math.ceil(row.virtual_bytes / GIB)),
    created_at: formatTime(row.created_at),
  };
}

export function presentForAdmin(row: ImageRow): AdminImage {
  const isReady = row.state === 'ready';
  const { reason_code: code, reason_message: message } = row;
  return {
    image_id: row.image_id,
    name: row.name,
    short_name: row.short_name,
    state: row.state,
    state_reason: code === null ? null : { code, message: message ?? '' },
    size: isReady ? row.size_bytes : null,
    virtual_size: isReady ? row.virtual_bytes : null,
    min_disk_gb: isReady ? presentImage(row).min_disk_gb : null,
    progress: progressOf(row),
    source: row.source,
    source_format: row.source_format,
    sha256: row.sha256,
    created_at: formatTime(row.created_at),
  };
}

function progressOf({ state, fetched_bytes, total_bytes }: ImageRow): AdminImage['progress'] {
  if (state !== 'importing' || total_bytes === null) return null;
  const percent = total_bytes === 0 ? 100 : Math.floor((fetched_bytes / total_bytes) * 100);
  return { bytes: fetched_bytes, total_bytes, percent };
}
