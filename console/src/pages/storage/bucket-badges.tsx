/** Whether a bucket keeps versions, and encrypts. */
import { Badge } from '@mantine/core';
import type { Bucket } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';

export function BucketBadges({ bucket }: { bucket: Pick<Bucket, 'versioning' | 'encryption'> }) {
  return (
    <>
      <Badge variant="light" color={bucket.versioning ? 'petrol' : 'gray'}>
        {bucket.versioning ? text.storage.versioned : text.storage.unversioned}
      </Badge>
      {bucket.encryption && (
        <Badge variant="light" color="gray">
          {text.storage.encrypted}
        </Badge>
      )}
    </>
  );
}
