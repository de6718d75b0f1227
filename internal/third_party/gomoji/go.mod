module github.com/forPelevin/gomoji

go 1.26.0
