import { Text } from '@mantine/core';
import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function BillingPage() {
  return (
    <Page title={text.billing.title}>
      <Text>{text.billing.soon}</Text>
    </Page>
  );
}
