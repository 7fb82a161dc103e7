/** Versioning and encryption of a bucket are turned on and off after a question. */
import { useMutation } from '@tanstack/react-query';
import type { Bucket, BucketChange } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { text } from '../../../texts/text.ts';
import { bucketsQuery } from '../queries.ts';

/** A change that turns versioning or encryption on or off. */
export interface BucketSwitch {
  readonly change: BucketChange;
  readonly action: string;
  readonly lead: string;
  readonly done: (bucket: string) => string;
}

export function switchesOf({
  versioning,
  encryption,
}: Bucket): Readonly<Record<'versions' | 'encryption', BucketSwitch>> {
  const { stopVersions, startVersions, stopEncryption, startEncryption } = text.storage.switches;
  return {
    versions: { change: { versioning: !versioning }, ...(versioning ? stopVersions : startVersions) },
    encryption: { change: { encryption: !encryption }, ...(encryption ? stopEncryption : startEncryption) },
  };
}

interface SwitchQuestionProps {
  readonly bucket: string;
  /** Null: nothing is asked. */
  readonly asked: BucketSwitch | null;
  readonly onClose: () => void;
}

export function SwitchQuestion({ bucket, asked, onClose }: SwitchQuestionProps) {
  const change = useMutation({
    mutationFn: (what: BucketSwitch) => cloud.changeBucket(bucket, what.change),
    meta: { shown: true, invalidates: [bucketsQuery] },
    onSuccess: (_, { done }) => {
      onClose();
      showDone(done(bucket));
    },
  });
  return (
    <Confirm
      isOpen={asked !== null}
      title={text.storage.switchAsk(asked?.action ?? '', bucket)}
      action={asked?.action ?? ''}
      isHarmless={Object.values(asked?.change ?? {}).includes(true)}
      isBusy={change.isPending}
      error={change.error}
      onConfirm={() => asked !== null && change.mutate(asked)}
      onClose={onClose}
    >
      {asked?.lead}
    </Confirm>
  );
}
