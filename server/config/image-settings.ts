/** Settings of the images that machines are created from. */
import { folders, integer, mirrorUrl, text } from './setting-kinds.ts';

export const IMAGE_SETTINGS = {
  imageSources: text(
    'CLOUDLET_IMAGE_SOURCES',
    '',
    'Host folders (comma-separated) from which administrators may add images by path',
    folders,
  ),
  imageMirror: text(
    'CLOUDLET_IMAGE_MIRROR',
    '',
    'Base URL of a mirror, `http://mirror.lab/images`, for images downloaded by name: a folder for each host, as `wget -x` makes it; it may be in a private network. Empty: from their publishers, over HTTPS; off: no downloads by name',
    mirrorUrl,
  ),
  imageMaxGb: integer(
    'CLOUDLET_IMAGE_MAX_GB',
    20,
    1,
    1024,
    'Maximum image size, as a file and as a virtual disk, GiB',
  ),
} as const;
