/** Images that a machine's disk can be created from. Imports are in image-imports.ts. */
import type { Change } from '../../metadata/change.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { AdminImage, Image } from '../schema.ts';
import type { ImageRow, ImageStore } from './image-store.ts';

export const DEFAULT_IMAGE = 'tiny';
const GIB = 2 ** 30;

const TINY: Image = {
  image_id: DEFAULT_IMAGE,
  name: 'Tiny Linux',
  is_builtin: true,
  size: null,
  min_disk_gb: 1,
  created_at: null,
};

export class Images {
  readonly #store: ImageStore;

  constructor(deps: { readonly store: ImageStore }) {
    this.#store = deps.store;
  }

  /** Images that are ready, built-in ones first. */
  async list(): Promise<Image[]> {
    const rows = await this.#store.list();
    return [TINY, ...rows.filter(({ state }) => state === 'ready').map(presentImage)];
  }

  /** Imported images in any state, oldest first. */
  async listAll(): Promise<AdminImage[]> {
    return (await this.#store.list()).map(presentForAdmin);
  }

  /** Finds an image that is ready. Throws `image_not_found`, `image_not_ready`. */
  async find(imageId: string): Promise<Image> {
    if (imageId === DEFAULT_IMAGE) return TINY;
    const row = await this.#store.find(imageId);
    if (row === undefined) throw imageNotFound();
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

function presentImage(row: ImageRow): Image {
  return {
    image_id: row.image_id,
    name: row.name,
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
    state: row.state,
    state_reason: code === null ? null : { code, message: message ?? '' },
    size: isReady ? row.size_bytes : null,
    virtual_size: isReady ? row.virtual_bytes : null,
    min_disk_gb: isReady ? presentImage(row).min_disk_gb : null,
    source: row.source,
    source_format: row.source_format,
    sha256: row.sha256,
    created_at: formatTime(row.created_at),
  };
}
