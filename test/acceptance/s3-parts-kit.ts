/** Multipart uploads over S3. */
import { completion, type S3Client, type S3Request } from './s3-kit.ts';

/** A part as named in the completion of its upload. */
export interface Part {
  readonly number: number;
  readonly etag: string | undefined;
}

export type PartUploads = ReturnType<typeof partUploadsTo>;

/** The steps of multipart uploads for the object at that path. */
export function partUploadsTo(s3: S3Client, path: string) {
  return {
    async putPart(id: string, number: number, body: string | Uint8Array): Promise<Part> {
      const { headers } = await s3.ok('PUT', path, { query: `partNumber=${number}&uploadId=${id}`, body });
      return { number, etag: headers.etag };
    },
    /** The request that completes the upload. */
    completing(id: string, parts: readonly Part[], more: S3Request = {}): [string, string, S3Request] {
      return ['POST', path, { query: `uploadId=${id}`, body: completion(parts), ...more }];
    },
  };
}
