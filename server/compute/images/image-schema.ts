/** Public schemas of images. */
import { Reason } from '../../http/response.ts';
import { namedObject, type Static, Type } from '../../platform/json-schema.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const integerOrNull = (description: string) => Type.Union([Type.Integer(), Type.Null()], { description });

export const Image = namedObject('Image', {
  image_id: Type.String(),
  name: Type.String(),
  is_builtin: Type.Boolean(),
  size: integerOrNull('Bytes; null when built in'),
  min_disk_gb: Type.Integer({ description: 'Smallest disk_gb of an instance type that can use the image' }),
  created_at: textOrNull('null when built in'),
});
export type Image = Static<typeof Image>;

export const AdminImage = namedObject('AdminImage', {
  image_id: Type.String(),
  name: Type.String(),
  state: Type.String({ enum: ['importing', 'ready', 'failed'] }),
  state_reason: Type.Union([Reason, Type.Null()], {
    description: 'Why the import failed',
  }),
  size: integerOrNull('Stored bytes; null until the image is ready'),
  virtual_size: integerOrNull('Virtual disk size in bytes; null until the image is ready'),
  min_disk_gb: integerOrNull(
    'Smallest disk_gb of an instance type that can use the image; null until it is ready',
  ),
  source: Type.String({ description: 'Path or URL of the source; the URL without its query' }),
  source_format: textOrNull('raw or qcow2, detected from the file header; null until the image is ready'),
  sha256: textOrNull('SHA-256 of the source; null until it was read completely'),
  created_at: Type.String(),
});
export type AdminImage = Static<typeof AdminImage>;

const name = Type.String({ description: '1 to 128 visible characters' });
const sha256 = Type.Optional(
  Type.String({
    pattern: '^[0-9a-fA-F]{64}$',
    'x-rule': 'must be a SHA-256: 64 hexadecimal digits',
    description: 'Expected SHA-256 of the source; a mismatch is refused',
  }),
);

export const NewImage = namedObject('NewImage', {
  name,
  path: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: 'Path of a file on this host, in a folder listed in CLOUDLET_IMAGE_SOURCES',
    }),
  ),
  url: Type.Optional(Type.String({ maxLength: 4096, description: 'An http:// or https:// URL' })),
  sha256,
});
export type NewImage = Static<typeof NewImage>;

export const ImageForm = namedObject('ImageForm', {
  file: Type.String({ format: 'binary', description: 'The image: qcow2 or raw' }),
  name: Type.Optional(Type.String({ description: 'Default: the file name' })),
  sha256,
});

export const DeletedImage = namedObject('DeletedImage', {
  image_id: Type.String(),
  deleted: Type.Literal(true),
});
export type DeletedImage = Static<typeof DeletedImage>;

export const ImagePath = Type.Object({ image_id: Type.String({ $id: 'ImageId' }) });
