/** Shapes of uploads in parts over REST. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { MIME_TYPE, MIME_TYPE_MAX_LENGTH } from '../schema.ts';
import { MAX_PARTS } from './part-uploads.ts';

const Crc32 = Type.String({
  pattern: '^[A-Za-z0-9+/]{6}==$',
  'x-rule': 'must be the four bytes of a CRC-32 in base64',
  examples: ['y/Q5Jg=='],
});

export const NewUpload = namedObject('NewUpload', {
  name: Type.String({ description: 'Name of the future object' }),
  mime_type: Type.Optional(
    Type.String({
      pattern: MIME_TYPE,
      maxLength: MIME_TYPE_MAX_LENGTH,
      'x-rule': 'must be a media type such as text/plain',
      description: 'Default: by the name',
    }),
  ),
});

export const BegunUpload = namedObject('BegunUpload', {
  upload_id: Type.String(),
  name: Type.String(),
  ends_at: Type.String({ description: 'When the upload is aborted unless completed' }),
});
export type BegunUpload = Static<typeof BegunUpload>;

export const UploadPart = namedObject('UploadPart', {
  number: Type.Integer(),
  size: Type.Integer(),
  etag: Type.String(),
  crc32: textOrNull('CRC-32 of the bytes in base64; null: the upload was begun with another checksum'),
});
export type UploadPart = Static<typeof UploadPart>;

export const PartForm = namedObject('PartForm', {
  file: Type.String({ format: 'binary', description: 'The bytes of the part' }),
});

export const PartPath = Type.Object({
  name: Type.String({ $id: 'BucketName' }),
  upload_id: Type.String({ $id: 'UploadId' }),
  number: Type.Integer({ minimum: 1, maximum: MAX_PARTS }),
});

export const UploadEnd = namedObject('UploadEnd', {
  parts: Type.Integer({
    minimum: 1,
    maximum: MAX_PARTS,
    description: 'Number of parts; the parts from 1 to this number become the object',
  }),
  size: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Size of the object in bytes; refused if the parts have another size',
    }),
  ),
  crc32: Type.Optional(Crc32),
});
export type UploadEnd = Static<typeof UploadEnd>;

export const CompletedUpload = namedObject('CompletedUpload', {
  object_id: Type.String(),
  version_id: Type.String(),
  etag: Type.String(),
  name: Type.String(),
  bucket: Type.String(),
});
export type CompletedUpload = Static<typeof CompletedUpload>;
