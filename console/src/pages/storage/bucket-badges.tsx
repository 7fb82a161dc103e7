/** What is turned on in a bucket. */
import { Badge } from '@mantine/core';
import type { Bucket } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';

export function BucketBadges({ bucket }: { bucket: Pick<Bucket, 'versioning' | 'encryption'> }) {
  return (
    <>
      {bucket.versioning && <Badge variant="light">{text.storage.versioned}</Badge>}
      {bucket.encryption && (
        <Badge variant="light" color="gray">
          {text.storage.encrypted}
        </Badge>
      )}
    </>
  );
}
