/** A bucket's tabs other than objects, fetched together: each has only a few lines. */
import type { BucketTab as Tab } from '../queries.ts';
import { SettingsTab } from '../settings/settings-tab.tsx';
import { LinksTab } from '../sharing/share-list.tsx';
import { RecoveryTab } from './recovery-tab.tsx';
import { UploadsTab } from './uploads-tab.tsx';

interface BucketTabProps {
  readonly tab: Tab;
  readonly bucket: string;
}

export function BucketTab({ tab, bucket }: BucketTabProps) {
  if (tab === 'uploads') return <UploadsTab bucket={bucket} />;
  if (tab === 'links') return <LinksTab bucket={bucket} />;
  if (tab === 'recovery') return <RecoveryTab bucket={bucket} />;
  return <SettingsTab bucket={bucket} />;
}
