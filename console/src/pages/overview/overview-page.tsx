/** Where one begins: the first steps, what there is, and how the cloud is doing. */
import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CreditWarning } from '../../parts/credit-warning.tsx';
import { Page } from '../../parts/page.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { AtAGlance } from './at-a-glance.tsx';
import { CloudStatus } from './cloud-status.tsx';
import { FirstSteps } from './first-steps.tsx';

export function OverviewPage() {
  const { data: account } = useQuery(accountQuery);
  const isAdmin = account?.is_admin === true;
  return (
    <Page title={account === undefined ? text.overview.title : text.overview.hello(account.username)}>
      <Stack gap={40}>
        <CreditWarning />
        <FirstSteps isAdmin={isAdmin} />
        <AtAGlance />
        <CloudStatus isAdmin={isAdmin} />
      </Stack>
    </Page>
  );
}
