-- Indexes on those foreign keys of the fact tables by which most queries come: the day, the customer. Items are
-- the first part of the primary keys.

create index store_sales_date on store_sales (ss_sold_date_sk);

create index store_sales_customer on store_sales (ss_customer_sk);

create index store_returns_date on store_returns (sr_returned_date_sk);

create index store_returns_customer on store_returns (sr_customer_sk);

create index catalog_sales_date on catalog_sales (cs_sold_date_sk);

create index catalog_sales_customer on catalog_sales (cs_bill_customer_sk);

create index catalog_returns_date on catalog_returns (cr_returned_date_sk);

create index web_sales_date on web_sales (ws_sold_date_sk);

create index web_sales_customer on web_sales (ws_bill_customer_sk);

create index web_returns_date on web_returns (wr_returned_date_sk);
