/** What a machine's disk can be made from. */
import { formatTime } from '../clock.ts';
import { AppError } from '../errors.ts';
import type { GuestImage } from './hypervisor.ts';
import type { ImageRow, ImageStore } from './image-store.ts';
import type { Image } from './schema.ts';

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

  /** Built-in ones first. */
  async list(): Promise<Image[]> {
    return [TINY, ...(await this.#store.list()).map(present)];
  }

  /** Throws `image_not_found`. */
  async find(imageId: string): Promise<Image> {
    if (imageId === DEFAULT_IMAGE) return TINY;
    const row = await this.#store.find(imageId);
    if (row !== undefined) return present(row);
    throw new AppError('image_not_found', 'There is no such image', { hint: 'GET /api/images lists them' });
  }
}

/** What an engine needs to know of an image that was found before. */
export function guestImage(imageId: string): GuestImage {
  const isTiny = imageId === DEFAULT_IMAGE;
  // Whatever was imported is kept as qcow2.
  return { imageId, boot: isTiny ? 'kernel' : 'disk', format: isTiny ? 'raw' : 'qcow2' };
}

function present(row: ImageRow): Image {
  return {
    image_id: row.image_id,
    name: row.name,
    is_builtin: false,
    size: row.size_bytes,
    min_disk_gb: Math.max(1, Math.ceil(row.virtual_bytes / GIB)),
    created_at: formatTime(row.created_at),
  };
}
