/** A bucket's tabs other than objects, fetched together: each has only a few lines. */
import { Stack } from '@mantine/core';
import type { BucketTab } from '../queries.ts';
import { LinksTab } from '../sharing/share-list.tsx';
import { WhoMay } from './permissions-tab.tsx';
import { RecoveryTab } from './recovery-tab.tsx';
import { SettingForms } from './setting-forms.tsx';
import { UploadsTab } from './uploads-tab.tsx';

interface TabProps {
  readonly tab: BucketTab;
  readonly bucket: string;
}

export function SettingTab({ tab, bucket }: TabProps) {
  if (tab === 'uploads') return <UploadsTab bucket={bucket} />;
  if (tab === 'links') return <LinksTab bucket={bucket} />;
  if (tab === 'recovery') return <RecoveryTab bucket={bucket} />;
  return (
    <Stack gap={36}>
      {tab === 'permissions' && <WhoMay bucket={bucket} />}
      <SettingForms tab={tab} bucket={bucket} />
    </Stack>
  );
}
