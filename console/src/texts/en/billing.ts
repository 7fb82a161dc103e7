export const billing = {
  title: 'Billing',
  soon: 'These pages are on their way. The API has everything already.',
};
